import { deleteAnswer } from './answers.ts'
import { isPrunable } from './clean-up.ts'
import type { Ledger } from './ledger.ts'
import {
  buyerKeyOf,
  chargeStatus,
  closed,
  isLeased,
  nextCheckAt,
  payableUntil,
  redact,
} from './payment-lifecycle.ts'
import type { PaymentRecord } from './payment-record.ts'

/** Numbers of records of one payer, by what became of them. */
export interface ForgetResult {
  readonly answers: number
  /** Deleted: nothing was charged, or the accounting period is over. */
  readonly deleted: number
  /** Reduced now to their money side. */
  readonly reduced: number
  /** Reduced to it before. */
  readonly kept: number
  /** Not finished: another run forgets them. */
  readonly open: number
  /** When the newest of the records that stay was charged, in milliseconds since the epoch. */
  readonly newest: number | undefined
}

/** What was sold, in a record that does not say it any more. */
export const FORGOTTEN = '-'

type Fate =
  { readonly kind: 'open' | 'kept' | 'deleted' } | { readonly kind: 'reduced'; readonly next: PaymentRecord }

/**
 * Deletes what a payer has bought: answers, operations, arguments and identifiers at once, and whole records where nothing
 * was charged, or where the charge is from before `before`. What stays of a charge is its money side: amount, network,
 * addresses, transaction, times and refund. Servers may use the ledger meanwhile.
 */
export async function forgetPayer(
  ledger: Ledger,
  { isPayer, before }: { readonly isPayer: (payer: string) => boolean; readonly before: number },
): Promise<ForgetResult> {
  const counts = { answers: 0, deleted: 0, reduced: 0, kept: 0, open: 0 }
  let newest: number | undefined
  for await (const record of ledger.records()) {
    if (!isPayer(record.payer)) continue
    const fate = fateOf(record, before, ledger.now())
    const next = fate.kind === 'reduced' ? fate.next : undefined
    const isChanged = fate.kind === 'reduced' || fate.kind === 'deleted'
    // A server has changed the record meanwhile.
    if (isChanged && !(await ledger.commit([{ previous: record, next }]))) {
      counts.open += 1
      continue
    }
    counts[fate.kind] += 1
    if (fate.kind !== 'deleted') newest = Math.max(newest ?? 0, record.settledAt ?? record.createdAt)
    if (!isChanged || record.answer === undefined) continue
    await deleteAnswer(ledger.answers, record.id, record.answer)
    counts.answers += 1
  }
  return { ...counts, newest }
}

function fateOf(record: PaymentRecord, before: number, now: number): Fate {
  const { receipt, undone, failedIn, pendingWrite, operation, answer, settledAt, createdAt } = record
  if (isLeased(record, now) || pendingWrite !== undefined || chargeStatus(record) === 'unknown')
    return { kind: 'open' }
  // What was sent for it might still be carried out, and its money would go back to its payer.
  if (receipt === undefined && failedIn !== undefined) return { kind: 'open' }
  // A payment that was undone by a reorganization after its answer is part of the accounts too.
  if (receipt === undefined && undone === undefined) return { kind: 'deleted' }
  const next = moneySide(record, now)
  if ((settledAt ?? createdAt) < before && isPrunable(next, now)) return { kind: 'deleted' }
  return operation === FORGOTTEN && answer === undefined ? { kind: 'kept' } : { kind: 'reduced', next }
}

/** Charged work that was not delivered is owed a refund then. */
function moneySide(record: PaymentRecord, now: number): PaymentRecord {
  const { payer, lookAt } = record
  const { dispatch, resource: _resource, answerDigest: _digest, ...rest } = closed(record)
  // Until then a reorganization may undo the settlement, and it is sent again.
  const isOver = lookAt === undefined && now >= payableUntil(record)
  const next = {
    ...rest,
    ...(dispatch && { dispatch: isOver ? redact(dispatch) : dispatch }),
    operation: FORGOTTEN,
    digest: '',
    revision: '',
    buyerKey: buyerKeyOf(payer, FORGOTTEN, ''),
    updatedAt: now,
    version: record.version + 1,
  }
  return { ...next, due: nextCheckAt(next) }
}
