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

/**
 * A transaction that has failed in a block which is undone may succeed in another one. Its buyer knows that nothing was
 * charged, and its record is gone: `ratecard payments reconcile` finds the charge.
 */
function isReopened(chain: SimulatedChain, key: string): boolean {
  const signed = readPaymentKey(key)
  return signed !== undefined && chain.isReopened(signed.from, signed.nonce)
}

/** Charged as recorded, and charged = answered or owed. */
function wrongCharges({ chain, records, answered, told, now }: Remains): readonly string[] {
  const seen = new Map(records.map((entry) => [entry.key, entry]))
  const keys = new Set([...seen.keys(), ...told.map(({ key }) => key)])
  const unrecorded = unrecordedIn(told)
  const got = new Set(told.filter(({ outcome }) => outcome === 'answered').map(({ key }) => key))
  return [...keys].flatMap((key) => {
    const entry = seen.get(key)
    const charged = isCharged(chain, key)
    if (charged && isReopened(chain, key)) return []
    if (charged && entry === undefined) return [`payment ${nameOf(key)} is charged, and no record knows it`]
    if (charged && entry?.receipt === undefined)
      return [`payment ${nameOf(key)} is charged, and its record says ${entry?.state}`]
    if (!charged && entry?.receipt !== undefined)
      return [`payment ${nameOf(key)} has a receipt, and the chain shows no charge`]
    if (!charged && got.has(key) && entry?.undone === undefined && !unrecorded.has(key))
      return [`payment ${nameOf(key)} was answered, and is not charged`]
    if (!charged || entry === undefined || got.has(key) || entry.state === 'sent') return []
    // Work that is settled afterwards was done, and is stored.
    const isOwed = (entry.settle === 'upfront' && entry.redeliver > 0) || isRefundDue(entry, now)
    return answered.has(entry.id) || isOwed
      ? []
      : [`payment ${nameOf(key)} is charged, and neither answered nor owed`]
  })
}

/**
 * The buyer has the answer, and the store was away and never got the receipt: when that block is undone, its record does
 * not say that the buyer has been answered, and the payment is not carried out again.
 */
function unrecordedIn(told: readonly Told[]): ReadonlySet<string> {
  return new Set(told.filter((each) => each.unrecorded).map(({ key }) => key))
}

/** What buyers were told of the charge. */
function lies({ chain, told, records }: Remains): readonly string[] {
  // A payment that a reorganisation has undone for good is reported to the operator.
  const undone = new Set(records.flatMap((entry) => (entry.undone === undefined ? [] : [entry.key])))
  const unrecorded = unrecordedIn(told)
  return told.flatMap(({ key, outcome, to, plan }) => {
    const charged = isCharged(chain, key)
    if (outcome === 'yes' && !charged && !undone.has(key) && !unrecorded.has(key))
      return [`purchase ${plan.id} was told that payment ${nameOf(key)} is charged, and it is not`]
    if (outcome !== 'no' || !charged || isReopened(chain, key)) return []
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
function chargedTwice({ chain, told, plans }: Remains): readonly string[] {
  return plans.flatMap((plan) => {
    if (!plan.args.startsWith('only')) return []
    const keys = new Set(told.filter((each) => each.plan.id === plan.id).map(({ key }) => key))
    const charged = [...keys].filter((key) => isCharged(chain, key) && !isReopened(chain, key))
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
