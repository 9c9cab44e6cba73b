import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { LeasedPurchase } from './request.ts'

/**
 * The last event of a stream, where its route has one: the id of the payment, and what a tool result says of it in `_meta`.
 * It is no part of the answer, so that its receipts can have the digest of what came before. Empty where there is none.
 */
export function receiptEvent({ request }: Pick<LeasedPurchase, 'request'>, record: PaymentRecord): string {
  const { payment, offer } = request
  const { receipt, id } = record
  if (!offer.endpoint.operation.response.receiptEvent || receipt === undefined) return ''
  const data = { payment: id, ...payment.protocol.tools.receipt(record, receipt, 200) }
  return `event: receipt\ndata: ${JSON.stringify(data)}\n\n`
}
