import { acquireExpired } from '../ledger/lease.ts'
import { firstLook, nextCheckAt } from '../ledger/payment-lifecycle.ts'
import type { PaymentRecord, Receipt, StoredAnswer } from '../ledger/payment-record.ts'
import type { PurchaseDeps } from './request.ts'
import type { PurchaseResult } from './result.ts'

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000
/** Ten minutes. */
const MOST_ATTEMPTS = 120

/** A payment that was settled and answered while the store was away. */
export interface LateReceipt {
  /** As it was stored last. */
  readonly record: PaymentRecord
  readonly receipt: Receipt
  /** Undefined when it was stored before the settlement. */
  readonly answer: StoredAnswer | undefined
}

/** `record`: as it was stored last; `result`: what its buyer was told. */
export function lateReceipt(record: PaymentRecord, receipt: Receipt, result: PurchaseResult): LateReceipt {
  // A stream is stored by itself.
  const isNew = record.answer === undefined && result.kind === 'answered' && result.answer.kind !== 'stream'
  return { record, receipt, answer: isNew ? result.answer : undefined }
}

type LateDeps = Pick<PurchaseDeps, 'ledger' | 'owner' | 'now' | 'every' | 'sleep' | 'stopping' | 'report'>

/**
 * Stores a receipt once the store takes it: only this process knows that the buyer has the answer, and without the receipt
 * nobody would carry the payment out again when its block is undone.
 */
export async function storeLate(deps: LateDeps, late: LateReceipt): Promise<void> {
  let pause = FIRST_PAUSE_MS
  for (let attempts = 0; attempts < MOST_ATTEMPTS && !deps.stopping.aborted; attempts += 1) {
    await deps.sleep(pause)
    // The next attempt finds the store as it is then.
    const stored = await attempt(deps, late).catch(() => 'not yet')
    if (stored === 'stored') return
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
  }
  deps.report(new Error(`the receipt of payment ${late.record.id} could not be stored`))
}

async function attempt(deps: LateDeps, late: LateReceipt): Promise<'stored' | 'not yet'> {
  const { ledger } = deps
  const standing = await ledger.get(late.record.key)
  // A store that was rolled back or emptied takes the record as new.
  if (standing === undefined)
    return (await ledger.insert(receiptedOf(deps, late))) === undefined ? 'stored' : 'not yet'
  if (isComplete(standing, late)) return 'stored'
  const lease = await acquireExpired(deps, standing)
  if (lease === undefined) return 'not yet'
  try {
    const { dispatch } = late.record
    if (lease.record.dispatch === undefined && dispatch !== undefined) await lease.update({ dispatch })
    if (lease.record.receipt === undefined) await lease.settle(late.receipt)
    if (late.answer !== undefined) await lease.advance('fulfilled', { answer: late.answer })
    await lease.release()
    return 'stored'
  } finally {
    lease.stopRenewal()
  }
}

/** Whether somebody else has stored it, or has seen meanwhile that its block is undone. */
function isComplete({ receipt, undone, answer, state }: PaymentRecord, late: LateReceipt): boolean {
  if (undone !== undefined || state === 'sent') return true
  return receipt !== undefined && (late.answer === undefined || answer !== undefined)
}

/** The record that a store gets which knows none; the answer is in the hands of its buyer. */
function receiptedOf({ now }: Pick<LateDeps, 'now'>, { record, receipt }: LateReceipt): PaymentRecord {
  const settledAt = now()
  const { answer: _answer, ...rest } = record
  const settled = {
    ...rest,
    state: 'sent',
    receipt,
    settledAt,
    leaseUntil: settledAt,
    version: record.version + 1,
    ...firstLook(record, receipt.block, settledAt),
  } as const
  return { ...settled, due: nextCheckAt(settled) }
}
