import type { Ledger } from '../ledger/ledger.ts'
import type { LedgerAccess } from '../ledger/lease.ts'
import { nextCheckAt } from '../ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'

/**
 * Records the delivery: from now on a copy needs more than the signature, and nobody works on it. No request waits for
 * that: `ConnectedBuyers.hasArrived` tells this process at once, and other processes have not seen the connection.
 */
export function markReceived(leaseContext: LedgerAccess, record: PaymentRecord): Promise<void> {
  const { ledger, now } = leaseContext
  const received = { state: 'sent', deliveredAt: now(), leaseUntil: now() } as const
  return change(leaseContext, record, received, (...given) => ledger.replaceSoon(...given))
}

/** Records that the delivery is unconfirmed and no request works on it: the buyer need not wait. */
export function markUndelivered(leaseContext: LedgerAccess, record: PaymentRecord): Promise<void> {
  const { ledger, now } = leaseContext
  return change(leaseContext, record, { leaseUntil: now() }, (...given) => ledger.replace(...given))
}

/** Without effect when the record was taken over since the delivery, or is marked already. */
async function change(
  { ledger, now }: LedgerAccess,
  delivered: PaymentRecord,
  mark: Partial<Pick<PaymentRecord, 'state' | 'deliveredAt' | 'leaseUntil'>>,
  store: Ledger['replace'],
): Promise<void> {
  const replace = async (current: PaymentRecord | undefined): Promise<boolean> => {
    if (current?.receipt === undefined || current.attempts !== delivered.attempts || current.state === 'sent')
      return false
    const marked = { ...current, ...mark, updatedAt: now(), version: current.version + 1 }
    return store(current, { ...marked, due: nextCheckAt(marked) })
  }
  // As a rule nobody has changed it since, and it need not be read.
  if (!(await replace(delivered))) await replace(await ledger.get(delivered.key))
}
