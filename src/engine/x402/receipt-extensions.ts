import type { JsonObject } from '../base/json.ts'
import type { SignedReceipts } from '../receipts/receipt-signer.ts'

/** Every extension of x402 describes what it contains. */
function holding(receipt: JsonObject | string): JsonObject {
  const type = typeof receipt === 'string' ? 'string' : 'object'
  const schema = { type: 'object', properties: { receipt: { type } }, required: ['receipt'] }
  return { info: { receipt }, schema }
}

/** Where a settlement response has its signed receipts: extension offer-receipt §5.1, and beside it our own. */
export function receiptExtensions({ x402, ratecard }: SignedReceipts): JsonObject {
  return {
    'offer-receipt': holding({ format: 'jws', signature: x402 }),
    'ratecard-receipt': holding(ratecard),
  }
}
