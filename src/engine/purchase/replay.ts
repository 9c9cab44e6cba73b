import { acquireExpired, isReusable } from '../ledger/lease.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { isStreaming } from './execution.ts'
import { answeredBy, hasArrived, isRedeliverable, poll, waitAsBuyer } from './redelivery.ts'
import type { PurchaseRequest, VerifiedPurchase } from './request.ts'
import type { PurchaseResult } from './result.ts'
import { resume, withLease } from './settlement-flow.ts'

/** Answers a payment that arrives again: waits for the first request, resumes after a dead process, or sends the stored answer. */
export async function replay(
  purchase: VerifiedPurchase,
  known: PaymentRecord,
  buy: (purchase: VerifiedPurchase) => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  const { deps, request } = purchase
  const { payment } = request
  // Until it is broadcast, only the buyer knows the payment.
  const isBuyer = payment.token !== undefined || known.dispatch === undefined
  const look = async (record: PaymentRecord | undefined): Promise<PurchaseResult | undefined> => {
    if (record === undefined || isReusable(record, deps.now())) return buy(purchase)
    // Checked each time: during the wait the payment may have bought something else, or its answer may have arrived.
    if (isForOther(request, record) || !mayHaveAnswer(purchase, record)) return reject(request, record)
    if (payment.copies !== 'wait') return replaySingleUse(purchase, record)
    // An observer of the transaction pool has no token either, so the connected buyer goes first.
    if (!isBuyer && record.leaseUntil > deps.now()) return undefined
    if (payment.protocol.isForAnother?.(record)) return undefined
    return (await answeredBy(deps, record)) ?? takeTurn(purchase, record)
  }
  return waitAsBuyer(purchase, known, () => poll(purchase, known, look))
}

/** A single-use payment gets its answer again only while the delivery is unconfirmed. */
async function replaySingleUse(
  purchase: VerifiedPurchase,
  record: PaymentRecord,
): Promise<PurchaseResult | undefined> {
  const { deps, request } = purchase
  if (hasArrived(deps.buyers, record)) return reject(request, record)
  if (record.leaseUntil <= deps.now()) return takeTurn(purchase, record)
  // The answer is being sent: its delivery is known in a moment, or when the stream ends.
  const isBeingSent = record.answer !== undefined || isStreaming(request.offer.endpoint)
  if (record.receipt !== undefined && isBeingSent) return undefined
  // Another process may be dead, and recovery has no buyer: a refusal would make this one pay again for what the
  // payment has bought.
  return record.owner === deps.owner && deps.buyers.isServed(record.id) ? reject(request, record) : undefined
}

/** Resumes a payment that a dead process or an unknown settlement has left; undefined while another process holds it. */
async function takeTurn(
  purchase: VerifiedPurchase,
  record: PaymentRecord,
): Promise<PurchaseResult | undefined> {
  const lease = await acquireExpired(purchase.deps, record)
  return lease === undefined ? undefined : withLease({ ...purchase, lease }, resume)
}

/** Whether the record is of another call, or of another authorization signed with the same nonce. */
function isForOther({ payment, offer, digest }: PurchaseRequest, record: PaymentRecord): boolean {
  return (
    record.authorizationHash !== payment.authorizationHash ||
    record.operation !== offer.endpoint.operation.id ||
    record.digest !== digest
  )
}

function reject({ payment, offer, digest }: PurchaseRequest, record: PaymentRecord): PurchaseResult {
  const { id, method } = offer.endpoint.operation
  // The payment is the idempotency key of a call with effects.
  if (method !== 'GET' && record.operation === id && record.digest !== digest)
    return { kind: 'replayRejected', record, code: 'body_differs' }
  return payment.copies === 'wait'
    ? { kind: 'replayRejected', record, code: 'payment_reused' }
    : { kind: 'refused', refusal: payment.copies }
}

/**
 * The calldata of a payment is public once it is broadcast, so a signature no longer identifies the buyer: a copy needs
 * the redelivery token of the first request. A payment that came without a token is answered until its delivery is
 * confirmed. After settlement both apply for the redelivery period.
 */
function mayHaveAnswer({ deps, request }: VerifiedPurchase, record: PaymentRecord): boolean {
  if (record.receipt !== undefined && !isRedeliverable(record, deps.now())) return false
  return record.redeliveryToken === undefined
    ? !hasArrived(deps.buyers, record)
    : record.redeliveryToken === request.payment.token
}
