import { isRefundDue, situationOf, type Situation } from '../../src/engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../../src/engine/ledger/payment-record.ts'
import { readPaymentKey } from '../../src/engine/x402/exact-evm/payment-key.ts'
import type { Plan, Told } from './buyer.ts'
import type { SimulatedChain } from './chain.ts'
import { BASE } from './market.ts'

/** What a run has left behind. */
export interface Remains {
  readonly chain: SimulatedChain
  /** Every record of the ledger. */
  readonly records: readonly PaymentRecord[]
  /** Which records have an answer that can be read. */
  readonly answered: ReadonlySet<string>
  readonly told: readonly Told[]
  readonly plans: readonly Plan[]
  readonly now: number
}

/** Situations in which nobody knows, or has done, what there is to do. */
const UNFINISHED: ReadonlySet<Situation> = new Set<Situation>([
  'reserved',
  'sending',
  'outcome unknown',
  'settled with a write',
  'void with a write',
])

/** Everything that has to be true of a run once its faults are over; one sentence for each thing that is not. */
export function violationsOf(remains: Remains): readonly string[] {
  return [
    ...unfinished(remains),
    ...wrongCharges(remains),
    ...lies(remains),
    ...chargedTwice(remains),
    ...gasLost(remains),
    ...stuck(remains),
  ]
}

/** Whether the money of a payment has moved. */
function isCharged(chain: SimulatedChain, key: string): boolean {
  const signed = readPaymentKey(key)
  return signed !== undefined && chain.state(signed.from, signed.nonce) === 'used'
}

export function isFinished(entry: PaymentRecord): boolean {
  return !UNFINISHED.has(situationOf(entry))
}

function unfinished({ records }: Remains): readonly string[] {
  return records
    .filter((entry) => !isFinished(entry))
    .map((entry) => `payment ${nameOf(entry.key)} is never finished: ${situationOf(entry)}`)
}

/** Charged as recorded, and charged = answered or owed. */
function wrongCharges({ chain, records, answered, told, now }: Remains): readonly string[] {
  const seen = new Map(records.map((entry) => [entry.key, entry]))
  const keys = new Set([...seen.keys(), ...told.map(({ key }) => key)])
  const got = new Set(told.filter(({ outcome }) => outcome === 'answered').map(({ key }) => key))
  return [...keys].flatMap((key) => {
    const entry = seen.get(key)
    const charged = isCharged(chain, key)
    if (charged && entry === undefined) return [`payment ${nameOf(key)} is charged, and no record knows it`]
    if (charged && entry?.receipt === undefined)
      return [`payment ${nameOf(key)} is charged, and its record says ${entry?.state}`]
    if (!charged && entry?.receipt !== undefined)
      return [`payment ${nameOf(key)} has a receipt, and the chain shows no charge`]
    if (!charged && got.has(key) && entry?.undone === undefined)
      return [`payment ${nameOf(key)} was answered, and is not charged`]
    if (!charged || entry === undefined || got.has(key) || entry.state === 'sent') return []
    // Work that is settled afterwards was done, and is stored.
    const isOwed = (entry.settle === 'upfront' && entry.redeliver > 0) || isRefundDue(entry, now)
    return answered.has(entry.id) || isOwed
      ? []
      : [`payment ${nameOf(key)} is charged, and neither answered nor owed`]
  })
}

/** Payments whose money goes back, because the work failed for good or their buyer was told that nothing was charged. */
function owedBack({ records, now }: Remains): ReadonlySet<string> {
  return new Set(records.filter((entry) => isRefundDue(entry, now)).map(({ key }) => key))
}

/** What buyers were told of the charge. */
function lies(remains: Remains): readonly string[] {
  const { chain, told, records } = remains
  // A payment that a reorganisation has undone for good is reported to the operator.
  const undone = new Set(records.flatMap((entry) => (entry.undone === undefined ? [] : [entry.key])))
  const refunds = owedBack(remains)
  return told.flatMap(({ key, outcome, to, plan }) => {
    const charged = isCharged(chain, key)
    if (outcome === 'yes' && !charged && !undone.has(key))
      return [`purchase ${plan.id} was told that payment ${nameOf(key)} is charged, and it is not`]
    if (outcome !== 'no' || !charged || refunds.has(key)) return []
    // The same payment may be sent again, or be on its way at the same time.
    const isAgain = told.some((other) => other.key === key && other.outcome !== 'no' && other.to > to)
    const isRepeated = told.some((other) => other.key === key && other.from >= to)
    const isAtOnce = told.some((other) => other.key === key && other.from < to && other.to > to)
    return isAgain || isRepeated || isAtOnce
      ? []
      : [`purchase ${plan.id} was told that payment ${nameOf(key)} is not charged, and it is`]
  })
}

/** A buyer that wants one answer pays once, however often it signs. */
function chargedTwice(remains: Remains): readonly string[] {
  const { chain, told, plans } = remains
  const refunds = owedBack(remains)
  return plans.flatMap((plan) => {
    if (!plan.args.startsWith('only')) return []
    const keys = new Set(told.filter((each) => each.plan.id === plan.id).map(({ key }) => key))
    const charged = [...keys].filter((key) => isCharged(chain, key) && !refunds.has(key))
    return charged.length <= 1
      ? []
      : [`purchase ${plan.id} is charged ${charged.length} times: ${charged.map(nameOf).join(', ')}`]
  })
}

const HOUR_MS = 3_600_000

function gasLost({ chain }: Remains): readonly string[] {
  const losses = chain.losses()
  const { maxGasLoss } = BASE.limits
  return losses
    .flatMap(({ at }) => {
      const sum = losses.reduce(
        (total, each) => (each.at >= at && each.at < at + HOUR_MS ? total + each.wei : total),
        0n,
      )
      return sum > maxGasLoss ? [`${sum} wei were lost in an hour, more than ${maxGasLoss}`] : []
    })
    .slice(0, 1)
}

function stuck({ chain }: Remains): readonly string[] {
  return chain.poolSize === 0
    ? []
    : [`${chain.poolSize} transactions wait in the pool for ever: nonces have a gap`]
}

export function nameOf(key: string): string {
  return key.slice(-64, -58)
}
