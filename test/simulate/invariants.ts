import {
  isRefundDue,
  paymentId,
  situationOf,
  type Situation,
} from '../../src/engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../../src/engine/ledger/payment-record.ts'
import { readPaymentKey } from '../../src/engine/x402/exact-evm/payment-key.ts'
import { readUptoKey } from '../../src/engine/x402/upto-evm/upto-key.ts'
import type { Plan, Told } from './buyer.ts'
import type { SimulatedChain } from './chain.ts'
import { channelName, movedName } from './contracts.ts'
import { BASE, wayOf } from './market.ts'
import type { SimulatedSvmChain } from './svm-chain.ts'
import { digestInKey } from '../../src/engine/x402/exact-svm/svm-key.ts'
import {
  accountName,
  isChannelId,
  type ChannelAccount,
} from '../../src/engine/x402/batch-settlement-evm/channel-account.ts'

/** What a run has left behind. */
export interface Remains {
  readonly chain: SimulatedChain
  readonly svmChain: SimulatedSvmChain
  /** Every record of the ledger. */
  readonly records: readonly PaymentRecord[]
  /** Which records have an answer that can be read. */
  readonly answered: ReadonlySet<string>
  readonly told: readonly Told[]
  readonly plans: readonly Plan[]
  /** What the store has of each channel through which something was bought, by id. */
  readonly channels: ReadonlyMap<string, ChannelAccount>
  /** What a failover of the store has taken back: ids of records, and names of states. */
  readonly lost: ReadonlySet<string>
  /** When the faults were over, and the last purchases began. */
  readonly calmSince: number
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
    ...wrongAmounts(remains),
    ...wrongChannels(remains),
    ...lies(remains),
    ...chargedTwice(remains),
    ...gasLost(remains),
    ...stuck(remains),
  ]
}

/** Whether a payment is a voucher of a channel. */
function isOfChannel(key: string): boolean {
  return key.includes(':channel:')
}

/** What a payment has moved on the chain, or in the ledger; undefined when it has moved nothing. */
function movedBy({ chain, svmChain, records }: Remains, key: string): bigint | undefined {
  const digest = key.includes(':solana:') ? digestInKey(key) : undefined
  if (digest !== undefined) {
    const moves = svmChain.moved(digest)
    return moves.length === 0 ? undefined : moves.reduce((sum, each) => sum + each, 0n)
  }
  const [authorization, permit] = [readPaymentKey(key), readUptoKey(key)]
  const amount =
    authorization === undefined
      ? permit && chain.get(movedName('permit', permit.from, permit.nonce))
      : chain.get(movedName('authorization', authorization.from, authorization.nonce))
  if (amount !== undefined && amount > 0n) return amount
  // What costs nothing moves nothing, and what is paid through a channel moves later.
  const receipt = records.find((record) => record.key === key)?.receipt
  return receipt !== undefined && (amount === undefined || receipt.amount === '0')
    ? BigInt(receipt.amount)
    : undefined
}

function isCharged(remains: Remains, key: string): boolean {
  return movedBy(remains, key) !== undefined
}

/** Whether it has cost anything: what costs nothing may be answered, and recorded, more than once. */
function isPaid(remains: Remains, key: string): boolean {
  return (movedBy(remains, key) ?? 0n) > 0n
}

export function isFinished(record: PaymentRecord): boolean {
  return !UNFINISHED.has(situationOf(record))
}

function unfinished({ records }: Remains): readonly string[] {
  return records
    .filter((record) => !isFinished(record))
    .map((record) => `payment ${nameOf(record.key)} is never finished: ${situationOf(record)}`)
}

/** Charged as recorded, and charged = answered or owed. */
function wrongCharges(remains: Remains): readonly string[] {
  const { records, answered, now } = remains
  const told = named(remains)
  const seen = new Map(records.map((record) => [record.key, record]))
  const keys = new Set([...seen.keys(), ...told.map(({ key }) => key)])
  const got = new Set(told.filter(({ outcome }) => outcome === 'answered').map(({ key }) => key))
  return [...keys].flatMap((key) => {
    if (isLost(remains, key)) return []
    const record = seen.get(key)
    const charged = isCharged(remains, key)
    if (charged && record === undefined) return [`payment ${nameOf(key)} is charged, and no record knows it`]
    if (charged && record?.receipt === undefined)
      return [`payment ${nameOf(key)} is charged, and its record says ${record?.state}`]
    if (!charged && record?.receipt !== undefined)
      return [`payment ${nameOf(key)} has a receipt, and the chain shows no charge`]
    if (!charged && got.has(key) && record?.undone === undefined)
      return [`payment ${nameOf(key)} was answered, and is not charged`]
    if (!charged || record === undefined || got.has(key) || record.state === 'sent') return []
    // Work that is settled afterwards was done, and is stored.
    const isOwed = (record.settle === 'upfront' && record.redeliver > 0) || isRefundDue(record, now)
    return answered.has(record.id) || isOwed
      ? []
      : [`payment ${nameOf(key)} is charged, and neither answered nor owed`]
  })
}

/** What is recorded is what has moved, and nothing is sent for what costs nothing. */
function wrongAmounts(remains: Remains): readonly string[] {
  return remains.records.flatMap(({ key, receipt, dispatch, authorizedAmount }) => {
    const moved = movedBy(remains, key)
    if (receipt?.amount === '0' && (receipt.transaction !== '' || dispatch !== undefined))
      return [`payment ${nameOf(key)} costs nothing, and a transaction was sent for it`]
    if (receipt === undefined || moved === undefined) return []
    if (moved > BigInt(authorizedAmount))
      return [
        `payment ${nameOf(key)} is charged ${moved}, more than the ${authorizedAmount} that were signed`,
      ]
    return moved.toString() === receipt.amount
      ? []
      : [`payment ${nameOf(key)} has moved ${moved}, and its receipt says ${receipt.amount}`]
  })
}

/** What a channel was charged is the sum of its receipts, and was claimed. */
function wrongChannels({ chain, records, channels, lost }: Remains): readonly string[] {
  return [...channels].flatMap(([id, { charged, setAside }]) => {
    if (!isChannelId(id)) return [`${id} is no channel`]
    const name = `channel ${id.slice(2, 8)}`
    const receipts = records.flatMap(({ key, receipt }) =>
      key.includes(`:channel:${id}:`) && receipt !== undefined ? [BigInt(receipt.amount)] : [],
    )
    const sum = receipts.reduce((total, each) => total + each, 0n)
    const claimed = chain.get(channelName('claimed', id))
    return [
      ...(sum === BigInt(charged) ? [] : [`${name} was charged ${charged}, and its receipts say ${sum}`]),
      ...(setAside === undefined ? [] : [`${name} is set aside: ${setAside.reason}`]),
      // A claim may have been sent for what was taken back afterwards.
      ...(claimed === BigInt(charged) || (claimed > BigInt(charged) && lost.has(accountName(BASE.id, id)))
        ? []
        : [`${name} was charged ${charged}, and ${claimed} could be claimed`]),
    ]
  })
}

/**
 * Whether the store has taken back what it had acknowledged of a payment. SECURITY.md says what that may cost: its answer
 * and its record, and what its buyer was told. It may not be charged twice, nor hold up any other.
 */
function isLost({ lost }: Remains, key: string): boolean {
  return lost.has(paymentId(key))
}

/** What was told of payments that are known by name. */
function named({ told }: Remains): readonly (Told & { readonly key: string })[] {
  return told.flatMap((each) => (each.key === undefined ? [] : [{ ...each, key: each.key }]))
}

/** Payments whose money goes back, because the work failed for good or their buyer was told that nothing was charged. */
function owedBack({ records, now }: Remains): ReadonlySet<string> {
  return new Set(records.filter((record) => isRefundDue(record, now)).map(({ key }) => key))
}

/** What buyers were told of the charge. */
function lies(remains: Remains): readonly string[] {
  const { records } = remains
  const told = named(remains)
  // A payment that a reorganisation has undone for good is reported to the operator.
  const undone = new Set(records.flatMap((record) => (record.undone === undefined ? [] : [record.key])))
  const refunds = owedBack(remains)
  return told.flatMap(({ key, outcome, to, plan }) => {
    if (isLost(remains, key)) return []
    const charged = isCharged(remains, key)
    if (outcome === 'yes' && !charged && !undone.has(key))
      return [`purchase ${plan.id} was told that payment ${nameOf(key)} is charged, and it is not`]
    if (outcome !== 'no' || !isPaid(remains, key) || refunds.has(key)) return []
    // The same payment may be sent again, or be on its way at the same time.
    const isAgain = told.some((other) => other.key === key && other.outcome !== 'no' && other.to > to)
    const isRepeated = told.some((other) => other.key === key && other.from >= to)
    const isAtOnce = told.some((other) => other.key === key && other.from < to && other.to > to)
    // A voucher gets its key from what it buys: one of which nothing was heard may have been the same payment.
    const isUnheard =
      isOfChannel(key) &&
      remains.told.some((other) => other.key === undefined && other.plan === plan && other.to > to)
    return isAgain || isRepeated || isAtOnce || isUnheard
      ? []
      : [`purchase ${plan.id} was told that payment ${nameOf(key)} is not charged, and it is`]
  })
}

/** A buyer that wants one answer pays once, however often it signs. */
function chargedTwice(remains: Remains): readonly string[] {
  const { plans, records } = remains
  const told = named(remains)
  const refunds = owedBack(remains)
  return plans.flatMap((plan) => {
    if (!plan.args.startsWith('only')) return []
    const keys = new Set(told.filter((each) => each.plan.id === plan.id).map(({ key }) => key))
    for (const record of records)
      if (record.digest === plan.args && wayOf(record) === plan.way) keys.add(record.key)
    if ([...keys].some((key) => isLost(remains, key))) return []
    const charged = [...keys].filter((key) => isPaid(remains, key) && !refunds.has(key))
    return charged.length <= 1
      ? []
      : [`purchase ${plan.id} is charged ${charged.length} times: ${charged.map(nameOf).join(', ')}`]
  })
}

const HOUR_MS = 3_600_000

/** Lamports (`FeeLosses`); a run lasts an hour. */
const MOST_FEES_LOST = 10_000_000n + 100_000n

function gasLost({ chain, svmChain }: Remains): readonly string[] {
  if (svmChain.lost > MOST_FEES_LOST) return [`${svmChain.lost} lamports were lost in an hour`]
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

function stuck({ chain, calmSince }: Remains): readonly string[] {
  const waiting = chain.waitingOfUsed(calmSince)
  return waiting === 0 ? [] : [`${waiting} transactions wait in the pool for ever: nonces have a gap`]
}

export function nameOf(key: string): string {
  const [, channel, ceiling, charges] = /:channel:0x(.{6})[^:]*:(\d+):(\d+):/.exec(key) ?? []
  return channel === undefined ? key.slice(-64, -58) : `${ceiling}/${charges} of ${channel}`
}
