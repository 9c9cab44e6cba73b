import type { Charged } from '../errors.ts'
import type { Dispatch, Entry } from './entry.ts'

/**
 * Who looks after a payment when its time has come: `money` where the chain or a handler has to be asked, `cleanup` where
 * something is only to be deleted, which is done in batches.
 */
export type Queue = 'money' | 'cleanup'

/** A block later than the end of a payment has to be there before anybody can say that it was never used. */
const AFTER_END_MS = 30_000

/** Longest time for which an unpaid record is kept, however late the signed payment expires. */
const LONGEST_UNPAID_MS = 3_600_000

const FIRST_CHECK_MS = 5_000
const LONGEST_WAIT_MS = 300_000

/** When a signed payment stops being waited for: payers choose `validBefore`, and some choose the year 9999. */
export function payableUntil({ createdAt, validBefore }: Pick<Entry, 'createdAt' | 'validBefore'>): number {
  return Math.min(validBefore, createdAt + LONGEST_UNPAID_MS)
}

/** How long an owner that has died keeps others waiting. */
export const LEASE_MS = 10_000
/** A lease that ends later than one that begins now, and this, was written by a clock that was wrong. */
const CLOCK_TOLERANCE_MS = 2_000

export function isLeased({ leaseUntil }: Entry, now: number): boolean {
  return leaseUntil > now && leaseUntil <= now + LEASE_MS + CLOCK_TOLERANCE_MS
}

/** When somebody has to look after an entry, by what it is; undefined: never again. */
export function nextCheckAt(entry: Omit<Entry, 'due'>): number | undefined {
  const { state, receipt, prepared, leaseUntil, updatedAt } = entry
  if (receipt !== undefined || state === 'settled' || state === 'sent') return afterSettlement(entry)
  switch (state) {
    case 'reserved':
    case 'settling':
      return leaseUntil
    case 'fulfilled': {
      // The work is done and nobody has asked for the money yet: the payment may come again until its end.
      const end = payableUntil(entry) + AFTER_END_MS
      return updatedAt < end ? Math.max(leaseUntil, end) : updatedAt + backoff(entry)
    }
    case 'voided':
      if (prepared !== undefined) return nextAttempt(entry)
      return Math.max(leaseUntil, payableUntil(entry) + AFTER_END_MS)
    case 'unknown':
      return updatedAt + backoff(entry)
  }
}

/** Less and less often: what fails now may fail for long. */
function backoff({ attempts }: Pick<Entry, 'attempts'>): number {
  return Math.min(FIRST_CHECK_MS * 2 ** Math.min(attempts, 10), LONGEST_WAIT_MS)
}

/** The first attempt is due at the end of the lease, in case its process has died. */
function nextAttempt(entry: Pick<Entry, 'leaseUntil' | 'updatedAt' | 'attempts'>): number {
  const { leaseUntil, updatedAt, attempts } = entry
  return attempts <= 1 ? leaseUntil : Math.max(leaseUntil, updatedAt + backoff(entry))
}

function afterSettlement(entry: Omit<Entry, 'due'>): number | undefined {
  const { answer, prepared, leaseUntil, settledAt, redeliver } = entry
  if (prepared !== undefined) return nextAttempt(entry)
  const times: number[] = []
  if (answer !== undefined || redeliver > 0) times.push((settledAt ?? 0) + redeliver)
  if (paymentOrderOf(entry.dispatch) !== undefined) times.push(payableUntil(entry) + AFTER_END_MS)
  return times.length === 0 ? undefined : Math.max(leaseUntil, Math.min(...times))
}

export function queueOf({ state, receipt, prepared }: Pick<Entry, 'state' | 'receipt' | 'prepared'>): Queue {
  if (prepared !== undefined) return 'money'
  const over = state === 'reserved' || state === 'voided' || state === 'settled' || state === 'sent'
  return over || receipt !== undefined ? 'cleanup' : 'money'
}

/** Worked for, paid for, or perhaps, and not known to have arrived. */
export function isUndelivered({ state, receipt, redeliver }: Entry): boolean {
  if (receipt !== undefined) return state !== 'sent' && redeliver > 0
  return state === 'fulfilled' || state === 'settling' || state === 'unknown'
}

/** Charged before the work, and the work has not succeeded: stays so for good when the redelivery window ends. */
export function isOwed({ flow, state }: Pick<Entry, 'flow' | 'state'>): boolean {
  return flow === 'upfront' && state === 'settled'
}

/** What an entry says of the money: a receipt is the proof, and without one only an order that was sent leaves a doubt. */
export function chargedBy({ state, receipt }: Pick<Entry, 'state' | 'receipt'>): Charged {
  if (receipt !== undefined) return 'yes'
  return state === 'settling' || state === 'unknown' ? 'unknown' : 'no'
}

/** What would move the money if it were sent again: a signed transaction, or a facilitator's request. */
export function paymentOrderOf(dispatch: Dispatch | undefined): string | undefined {
  return dispatch?.kind === 'facilitator' ? dispatch.request : dispatch?.raw
}

export function withPaymentOrder(dispatch: Dispatch, order: string): Dispatch {
  return dispatch.kind === 'facilitator' ? { ...dispatch, request: order } : { ...dispatch, raw: order }
}

/** Erases what works as a payment order. */
export function redact(dispatch: Dispatch): Dispatch {
  if (dispatch.kind === 'facilitator') {
    const { request: _request, ...rest } = dispatch
    return rest
  }
  const { raw: _raw, ...rest } = dispatch
  return rest
}

/**
 * The record of a sale, once its answer is not given again any more. Whoever shows the payment is told that it was used,
 * for which its key is enough.
 */
export function closed({ answer: _answer, token: _token, ...entry }: Entry): Entry {
  return { ...entry, token: undefined, seal: '', owner: '', identifier: undefined, redeliver: 0 }
}
