import {
  LEASE_MS,
  CLOCK_TOLERANCE_MS,
  AFTER_EXPIRY_MS,
  LONGEST_UNPAID_MS,
  FIRST_CHECK_MS,
  LONGEST_CHECK_MS,
  EARLIEST_LOOK_MS,
  FIRST_LOOK_MS,
  LONGEST_LOOK_MS,
  LOOKS_GIVEN_UP_MS,
} from '../base/money-times.ts'
import { hash } from 'node:crypto'
import type { Charged } from '../base/errors.ts'
import type { BlockReference, Dispatch, PaymentRecord, Purchase, Refund } from './payment-record.ts'

/** A record before it is decided when it is looked at again. */
export type Unscheduled = Omit<PaymentRecord, 'due'>

/**
 * Who looks after a payment when its time has come: `money` where the chain or a handler has to be asked, `blocks` where
 * the block of a settled payment is not final yet, `cleanup` where something is only to be deleted. The last two are done
 * for many payments together.
 */
export type Queue = (typeof QUEUES)[number]
export const QUEUES = ['money', 'blocks', 'cleanup'] as const

/** When a signed payment is no longer awaited: payers choose `validBefore`, some the year 9999. */
export function payableUntil({
  createdAt,
  validBefore,
}: Pick<PaymentRecord, 'createdAt' | 'validBefore'>): number {
  return Math.min(validBefore, createdAt + LONGEST_UNPAID_MS)
}

export function isLeased({ leaseUntil }: PaymentRecord, now: number): boolean {
  return leaseUntil > now && leaseUntil <= now + LEASE_MS + CLOCK_TOLERANCE_MS
}

/**
 * The situations of a record, one for each combination of its members that occurs; `docs/money-path.md` says what each
 * means. The situation alone decides when the record is looked at again.
 */
export const SITUATIONS = [
  'reserved',
  'answer unpaid',
  'sending',
  'outcome unknown',
  'void',
  'void with a write',
  'void in an open block',
  'undone for good',
  'settled with a write',
  'settled in an open block',
  'settled and kept',
  'refund due',
  'closed',
] as const
export type Situation = (typeof SITUATIONS)[number]

export function situationOf(record: Omit<PaymentRecord, 'due'>): Situation {
  const { state, receipt, pendingWrite, lookAt, undone } = record
  if (receipt !== undefined || state === 'settled' || state === 'sent') {
    if (pendingWrite !== undefined) return 'settled with a write'
    if (lookAt !== undefined) return 'settled in an open block'
    if (keptUntil(record) !== undefined) return 'settled and kept'
    return isRefundDue(record, Infinity) ? 'refund due' : 'closed'
  }
  switch (state) {
    case 'reserved':
      return 'reserved'
    case 'settling':
      return 'sending'
    case 'fulfilled':
      return 'answer unpaid'
    case 'unknown':
      return 'outcome unknown'
    case 'voided':
      if (pendingWrite !== undefined) return 'void with a write'
      if (lookAt !== undefined) return 'void in an open block'
      return undone === undefined ? 'void' : 'undone for good'
  }
}

/** When a record must be processed next; undefined: never again. */
export function nextCheckAt(record: Omit<PaymentRecord, 'due'>): number | undefined {
  const { leaseUntil, updatedAt, lookAt = 0 } = record
  switch (situationOf(record)) {
    case 'reserved':
    case 'sending':
      return leaseUntil
    case 'answer unpaid': {
      // The work is done and nothing was sent: the payment may arrive again until it expires.
      const end = payableUntil(record) + AFTER_EXPIRY_MS
      return updatedAt < end ? Math.max(leaseUntil, end) : updatedAt + backoff(record)
    }
    case 'outcome unknown':
      return updatedAt + Math.min(backoff(record), pauseUntilExpiry(record, updatedAt) ?? Infinity)
    case 'void':
      return Math.max(leaseUntil, payableUntil(record) + AFTER_EXPIRY_MS)
    case 'void with a write':
    case 'settled with a write':
      return nextAttempt(record)
    // A look needs no lease, and the process that holds one may be dead.
    case 'void in an open block':
    case 'settled in an open block':
      return lookAt
    case 'settled and kept':
      return Math.max(leaseUntil, keptUntil(record) ?? 0)
    case 'refund due':
      return NEVER
    // Answered and not charged any more: the operator has to see it.
    case 'undone for good':
    case 'closed':
      return undefined
  }
}

/** When the next part of a settled payment is to be deleted: its answer, or what works as a payment order. */
function keptUntil(record: Omit<PaymentRecord, 'due'>): number | undefined {
  const { answer, settledAt = 0, redeliver } = record
  const times: number[] = []
  if (answer !== undefined || redeliver > 0) times.push(settledAt + redeliver)
  if (paymentOrderOf(record.dispatch) !== undefined) times.push(payableUntil(record) + AFTER_EXPIRY_MS)
  return times.length === 0 ? undefined : Math.min(...times)
}

/** Increasing pauses: a failure may last. */
function backoff({ attempts }: Pick<PaymentRecord, 'attempts'>): number {
  return Math.min(FIRST_CHECK_MS * 2 ** Math.min(attempts, 10), LONGEST_CHECK_MS)
}

/** The first attempt is due at the end of the lease, in case its process has died. */
function nextAttempt(record: Pick<PaymentRecord, 'leaseUntil' | 'updatedAt' | 'attempts'>): number {
  const { leaseUntil, updatedAt, attempts } = record
  return attempts <= 1 ? leaseUntil : Math.max(leaseUntil, updatedAt + backoff(record))
}

/**
 * The longest pause of a payment that was charged and may have to be sent again: nobody else sends a transaction of the
 * payer, and one of ours that was undone is to be in a block before the payment expires. Undefined: no such hurry.
 */
function pauseUntilExpiry(
  { undone, dispatch, receipt, validBefore, createdAt, settledAt = createdAt }: Omit<PaymentRecord, 'due'>,
  now: number,
): number | undefined {
  const left = validBefore - now
  if (left <= 0) return undefined
  // The process that sends it again may be dead.
  if (undone !== undefined) return EARLIEST_LOOK_MS
  if (receipt === undefined || dispatch?.kind !== 'payer') return undefined
  // A block is undone soon after it was mined, or hardly ever.
  return Math.max(EARLIEST_LOOK_MS, Math.min(now - settledAt, Math.floor(left / 2)))
}

/**
 * The members of a record that say when the block of its outcome is looked at: none when no node has shown the block. One
 * that was settled shortly before its end is looked at sooner: afterwards it cannot be sent again.
 */
export function firstLook(
  { validBefore }: Pick<PaymentRecord, 'validBefore'>,
  block: BlockReference | undefined,
  now: number,
): Pick<PaymentRecord, 'lookAt'> {
  if (block === undefined) return {}
  const left = validBefore - now
  const soon = left > 0 ? Math.max(EARLIEST_LOOK_MS, Math.floor(left / 6)) : FIRST_LOOK_MS
  return { lookAt: now + Math.min(FIRST_LOOK_MS, soon) }
}

/** The record of a payment that has bought nothing, without its answer and everything that was signed. */
export function voided({ answer: _answer, dispatch, ...record }: Unscheduled, now: number): Unscheduled {
  const { failedIn } = record
  return {
    ...record,
    state: 'voided',
    identifier: undefined,
    ...firstLook(record, failedIn, now),
    // The chain shows a transaction of a payer by its hash only.
    ...(failedIn && dispatch?.kind === 'payer' && { dispatch: redact(dispatch) }),
  }
}

/**
 * When to look again at a block that is not final, so that the last look comes soon after it is. `progress`: how far it
 * is, 0 to 1; undefined when it could not be looked at. The result is undefined when nobody is to look again.
 */
export function nextLook(
  record: Omit<PaymentRecord, 'due'>,
  progress: number | undefined,
  now: number,
): number | undefined {
  const { settledAt = record.createdAt } = record
  const age = now - settledAt
  if (age >= LOOKS_GIVEN_UP_MS) return undefined
  const soon = pauseUntilExpiry(record, now) ?? Infinity
  if (progress === undefined) return now + Math.min(soon, FIRST_LOOK_MS)
  const end = settledAt + (age / progress) * 1.1
  const usual = Math.max(now + FIRST_LOOK_MS, Math.min(end, now + Math.min(2 * age, LONGEST_LOOK_MS)))
  return Math.round(Math.min(now + soon, usual))
}

/** The record of a payment whose block is final. */
export function finalized({
  lookAt: _lookAt,
  failedIn: _failedIn,
  receipt,
  ...record
}: PaymentRecord): PaymentRecord {
  if (receipt === undefined) return record
  const { block: _block, ...rest } = receipt
  return { ...record, receipt: rest }
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

/** Worked on, answered or possibly charged, without a confirmed delivery. */
export function isUndelivered({ state, receipt, redeliver }: PaymentRecord): boolean {
  if (receipt !== undefined) return state !== 'sent' && redeliver > 0
  return state === 'reserved' || state === 'fulfilled' || state === 'settling' || state === 'unknown'
}

/** Charged before the work, which has not succeeded; remains so until a refund. */
export function isOwed({
  settle,
  state,
  refund,
}: Pick<PaymentRecord, 'settle' | 'state' | 'refund'>): boolean {
  return settle === 'upfront' && state === 'settled' && refund?.kind !== 'sent'
}

/** Due when the work fails at every run, or the period to run it again is over; undefined: no refund is due. */
export function refundStateOf(record: Omit<PaymentRecord, 'due'>, now: number): Refund['kind'] | undefined {
  const { receipt, settledAt = 0, redeliver, refund } = record
  if (receipt === undefined || refund !== undefined) return refund?.kind
  return isOwed(record) && settledAt + redeliver <= now ? 'due' : undefined
}

/** Only a refund can resolve it. */
export function isRefundDue(record: Omit<PaymentRecord, 'due'>, now: number): boolean {
  const state = refundStateOf(record, now)
  return state === 'due' || state === 'sending'
}

/** What was charged: a receipt proves it, and without one only an attempt that was sent is uncertain. */
export function chargeStatus({ state, receipt }: Pick<PaymentRecord, 'state' | 'receipt'>): Charged {
  if (receipt !== undefined) return 'yes'
  return state === 'settling' || state === 'unknown' ? 'unknown' : 'no'
}

/** What could move money if sent again: a signed transaction, or a facilitator's request. */
export function paymentOrderOf(dispatch: Dispatch | undefined): string | undefined {
  return dispatch?.kind === 'facilitator' ? dispatch.request : dispatch?.raw
}

export function withPaymentOrder(dispatch: Dispatch, order: string): Dispatch {
  return dispatch.kind === 'facilitator' ? { ...dispatch, request: order } : { ...dispatch, raw: order }
}

/** Erases what could be used as a payment order. */
export function redact(dispatch: Dispatch): Dispatch {
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
export function closed({ answer, redeliveryToken: _token, ...record }: PaymentRecord): PaymentRecord {
  return {
    ...record,
    ...(answer !== undefined && record.resource !== undefined && { answerDigest: answer.digest }),
    redeliveryToken: undefined,
    authorizationHash: '',
    owner: '',
    identifier: undefined,
    redeliver: 0,
  }
}

/**
 * What a compare-and-set compares. The version alone is not enough: it starts again when a record is removed and the
 * payment comes again, and a process that had stopped in the meantime would write over somebody else's record.
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
