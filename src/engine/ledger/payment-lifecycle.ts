import { hash } from 'node:crypto'
import type { Charged } from '../base/errors.ts'
import type { PaymentRecord, Purchase, Receipt, Refund, SettlementAttempt } from './payment-record.ts'

/**
 * Who looks after a payment when its time has come: `money` where the chain or a handler has to be asked, `blocks` where
 * the block of a settled payment is not final yet, `cleanup` where something is only to be deleted. The last two are done
 * for many payments together.
 */
export type Queue = (typeof QUEUES)[number]
export const QUEUES = ['money', 'blocks', 'cleanup'] as const

/** A payment counts as unused only after a block beyond its expiry. */
const AFTER_END_MS = 30_000

/** Longest time for which an unpaid record is kept, whatever the expiry of the signed payment. */
const LONGEST_UNPAID_MS = 3_600_000

const FIRST_CHECK_MS = 5_000
const LONGEST_WAIT_MS = 300_000

/** When a signed payment is no longer awaited: payers choose `validBefore`, some the year 9999. */
export function payableUntil({
  createdAt,
  validBefore,
}: Pick<PaymentRecord, 'createdAt' | 'validBefore'>): number {
  return Math.min(validBefore, createdAt + LONGEST_UNPAID_MS)
}

/** How long a dead owner blocks others. */
export const LEASE_MS = 10_000
/** A lease that ends later than a new one by more than this was written with a wrong clock. */
const CLOCK_TOLERANCE_MS = 2_000

export function isLeased({ leaseUntil }: PaymentRecord, now: number): boolean {
  return leaseUntil > now && leaseUntil <= now + LEASE_MS + CLOCK_TOLERANCE_MS
}

/** When a record must be processed next, by its state; undefined: never again. */
export function nextCheckAt(entry: Omit<PaymentRecord, 'due'>): number | undefined {
  const { state, receipt, pendingWrite, leaseUntil, updatedAt } = entry
  if (receipt !== undefined || state === 'settled' || state === 'sent') return afterSettlement(entry)
  switch (state) {
    case 'reserved':
    case 'settling':
      return leaseUntil
    case 'fulfilled': {
      // The work is done and nothing was sent: the payment may arrive again until it expires.
      const end = payableUntil(entry) + AFTER_END_MS
      return updatedAt < end ? Math.max(leaseUntil, end) : updatedAt + backoff(entry)
    }
    case 'voided':
      if (pendingWrite !== undefined) return nextAttempt(entry)
      // Answered and not charged any more: the operator has to see it.
      if (entry.undone !== undefined) return undefined
      return Math.max(leaseUntil, payableUntil(entry) + AFTER_END_MS)
    case 'unknown':
      return updatedAt + backoff(entry)
  }
}

/** Increasing pauses: a failure may last. */
function backoff({ attempts }: Pick<PaymentRecord, 'attempts'>): number {
  return Math.min(FIRST_CHECK_MS * 2 ** Math.min(attempts, 10), LONGEST_WAIT_MS)
}

/** The first attempt is due at the end of the lease, in case its process has died. */
function nextAttempt(entry: Pick<PaymentRecord, 'leaseUntil' | 'updatedAt' | 'attempts'>): number {
  const { leaseUntil, updatedAt, attempts } = entry
  return attempts <= 1 ? leaseUntil : Math.max(leaseUntil, updatedAt + backoff(entry))
}

function afterSettlement(entry: Omit<PaymentRecord, 'due'>): number | undefined {
  const { answer, pendingWrite, leaseUntil, settledAt, lookAt, redeliver } = entry
  if (pendingWrite !== undefined) return nextAttempt(entry)
  if (lookAt !== undefined) return Math.max(leaseUntil, lookAt)
  const times: number[] = []
  if (answer !== undefined || redeliver > 0) times.push((settledAt ?? 0) + redeliver)
  if (paymentOrderOf(entry.dispatch) !== undefined) times.push(payableUntil(entry) + AFTER_END_MS)
  if (times.length > 0) return Math.max(leaseUntil, Math.min(...times))
  return isRefundDue(entry, Infinity) ? NEVER : undefined
}

/** First look at the block of a settled payment. Most reorganisations are shorter. */
const FIRST_LOOK_MS = 15_000
const LONGEST_LOOK_MS = 600_000
/** A block that could not be looked at for so long counts as final. */
const GIVEN_UP_MS = 86_400_000

/** The members of a settled payment that say when its block is looked at: none when no node has shown the block. */
export function firstLook({ block }: Receipt, now: number): Pick<PaymentRecord, 'lookAt'> {
  return block === undefined ? {} : { lookAt: now + FIRST_LOOK_MS }
}

/**
 * When to look again at a block that is not final, so that the last look comes soon after it is. `progress`: how far it
 * is, 0 to 1; undefined when it could not be looked at. Resolves to undefined when nobody is to look again.
 */
export function nextLook(
  { settledAt = 0 }: Pick<PaymentRecord, 'settledAt'>,
  progress: number | undefined,
  now: number,
): number | undefined {
  const age = now - settledAt
  if (age >= GIVEN_UP_MS) return undefined
  if (progress === undefined) return now + FIRST_LOOK_MS
  const end = settledAt + (age / progress) * 1.1
  return Math.round(Math.max(now + FIRST_LOOK_MS, Math.min(end, now + Math.min(2 * age, LONGEST_LOOK_MS))))
}

/** The record of a settled payment whose block is final. */
export function finalized({ lookAt: _lookAt, receipt, ...entry }: PaymentRecord): PaymentRecord {
  if (receipt === undefined) return entry
  const { block: _block, ...rest } = receipt
  return { ...entry, receipt: rest }
}

/** Keeps due refunds in the index, but never due: the year 2286. */
export const NEVER = 10_000_000_000_000

export function queueOf({
  state,
  receipt,
  pendingWrite,
  lookAt,
  due,
}: Pick<PaymentRecord, 'state' | 'receipt' | 'pendingWrite' | 'lookAt' | 'due'>): Queue {
  if (pendingWrite !== undefined || due === NEVER) return 'money'
  if (lookAt !== undefined) return 'blocks'
  const over = state === 'reserved' || state === 'voided' || state === 'settled' || state === 'sent'
  return over || receipt !== undefined ? 'cleanup' : 'money'
}

/** Answered or possibly charged, without a confirmed delivery. */
export function isUndelivered({ state, receipt, redeliver }: PaymentRecord): boolean {
  if (receipt !== undefined) return state !== 'sent' && redeliver > 0
  return state === 'fulfilled' || state === 'settling' || state === 'unknown'
}

/** Charged before the work, which has not succeeded; remains so until a refund. */
export function isOwed({ settle, state, refund }: Pick<PaymentRecord, 'settle' | 'state' | 'refund'>): boolean {
  return settle === 'upfront' && state === 'settled' && refund?.kind !== 'sent'
}

/** Due when the work fails at every run, or the period to run it again is over; undefined: no refund is due. */
export function refundStateOf(entry: Omit<PaymentRecord, 'due'>, now: number): Refund['kind'] | undefined {
  const { receipt, settledAt = 0, redeliver, refund } = entry
  if (receipt === undefined || refund !== undefined) return refund?.kind
  return isOwed(entry) && settledAt + redeliver <= now ? 'due' : undefined
}

/** Only a refund can resolve it. */
export function isRefundDue(entry: Omit<PaymentRecord, 'due'>, now: number): boolean {
  const state = refundStateOf(entry, now)
  return state === 'due' || state === 'sending'
}

/** What was charged: a receipt proves it, and without one only an attempt that was sent is uncertain. */
export function chargeStatus({ state, receipt }: Pick<PaymentRecord, 'state' | 'receipt'>): Charged {
  if (receipt !== undefined) return 'yes'
  return state === 'settling' || state === 'unknown' ? 'unknown' : 'no'
}

/** What could move money if sent again: a signed transaction, or a facilitator's request. */
export function paymentOrderOf(dispatch: SettlementAttempt | undefined): string | undefined {
  return dispatch?.kind === 'facilitator' ? dispatch.request : dispatch?.raw
}

export function withPaymentOrder(dispatch: SettlementAttempt, order: string): SettlementAttempt {
  return dispatch.kind === 'facilitator' ? { ...dispatch, request: order } : { ...dispatch, raw: order }
}

/** Erases what could be used as a payment order. */
export function redact(dispatch: SettlementAttempt): SettlementAttempt {
  if (dispatch.kind === 'facilitator') {
    const { request: _request, ...rest } = dispatch
    return rest
  }
  const { raw: _raw, ...rest } = dispatch
  return rest
}

/**
 * The record of a sale, once its answer is not given again any more. A buyer who shows the payment learns that it was used,
 * for which its key is enough.
 */
export function closed({ answer: _answer, redeliveryToken: _token, ...entry }: PaymentRecord): PaymentRecord {
  return {
    ...entry,
    redeliveryToken: undefined,
    authorizationHash: '',
    owner: '',
    identifier: undefined,
    redeliver: 0,
  }
}

/**
 * What a compare-and-set compares. The version alone is not enough: it starts again when an entry is removed and the
 * payment comes again, and a process that had stopped in the meantime would write over somebody else's entry.
 */
export function casToken({ version, createdAt, owner }: PaymentRecord): string {
  return `${version}:${createdAt}:${owner}`
}

/** Public id of a payment, which discloses neither payer nor nonce. */
export function paymentId(key: string): string {
  return `pay_${hash('sha256', key, 'base64url').slice(0, 22)}`
}

export function newRecord(purchase: Purchase, owner: string, now: number, leaseMs: number): PaymentRecord {
  return {
    ...purchase,
    id: paymentId(purchase.key),
    state: 'reserved',
    owner,
    leaseUntil: now + leaseMs,
    due: now + leaseMs,
    attempts: 1,
    createdAt: now,
    updatedAt: now,
    version: 1,
  }
}

/** Key for equal purchases: the same payer, operation and arguments. */
export function buyerKeyOf(payer: string, operation: string, digest: string): string {
  return nameOf(['buyerKey', payer, operation, digest])
}

/** Key of a client's identifier, which is unique for its payer. */
export function identifierName(payer: string, identifier: string): string {
  return nameOf(['identifier', payer, identifier])
}

function nameOf(parts: readonly string[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 32)
}
