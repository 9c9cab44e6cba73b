import type { LedgerAccess } from '../ledger/lease.ts'
import { nextCheckAt } from '../ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'

/** Records the delivery: from now on a copy needs more than the signature, and nobody works on it. */
export function markReceived(leaseContext: LedgerAccess, record: PaymentRecord): Promise<void> {
  return change(leaseContext, record, (current) => ({
    ...current,
    state: 'sent',
    deliveredAt: leaseContext.now(),
    leaseUntil: leaseContext.now(),
  }))
}

/** Records that the delivery is unconfirmed and no request works on it: the buyer need not wait. */
export function markUndelivered(leaseContext: LedgerAccess, record: PaymentRecord): Promise<void> {
  return change(leaseContext, record, (current) => ({ ...current, leaseUntil: leaseContext.now() }))
}

/** Without effect when the record was taken over since the delivery, or is marked already. */
async function change(
  { ledger, now }: LedgerAccess,
  delivered: PaymentRecord,
  mark: (current: PaymentRecord) => PaymentRecord,
): Promise<void> {
  const replace = async (current: PaymentRecord | undefined): Promise<boolean> => {
    if (current?.receipt === undefined || current.attempts !== delivered.attempts || current.state === 'sent')
      return false
    const marked = { ...mark(current), updatedAt: now(), version: current.version + 1 }
    return ledger.replace(current, { ...marked, due: nextCheckAt(marked) })
  }
  // As a rule nobody has changed it since, and it need not be read.
  if (!(await replace(delivered))) await replace(await ledger.get(delivered.key))
}
