import type { PaymentRecord } from '../ledger/payment-record.ts'
import { answeredBy, endEarlier, poll, type Found } from './redelivery.ts'
import type { VerifiedPurchase } from './request.ts'
import type { PurchaseResult } from './result.ts'

// The payment itself is one idempotency key of a purchase (`replay.ts`); a `payment-identifier` or parameter is
// another.

/** Answers a new payment whose identifier has been used: the same request shares the first answer and is not charged. */
export async function dedupeByIdentifier(
  purchase: VerifiedPurchase,
  named: PaymentRecord,
  buy: (purchase: VerifiedPurchase) => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  const { offer, digest } = purchase.request
  if (named.operation !== offer.endpoint.operation.id || named.digest !== digest)
    return { kind: 'replayRejected', record: named, code: 'idempotency_conflict' }
  const found = await poll(purchase, named, async (record): Promise<Found | undefined> => {
    if (record === undefined || record.identifier !== named.identifier) return { kind: 'free' }
    const answered = await answeredBy(purchase.deps, record)
    // Only its own protocol can resolve a payment; recovery ends one of another protocol.
    const isAlike = record.protocol === purchase.request.payment.protocol.name
    return answered ?? (isAlike ? endEarlier(purchase, record) : undefined)
  })
  return found.kind === 'free' ? buy(purchase) : found
}
