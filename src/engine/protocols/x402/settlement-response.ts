import type { ErrorCode } from '../../errors.ts'
import type { JsonObject } from '../../json.ts'
import type { Entry, Receipt } from '../../ledger/entry.ts'

/** x402 v2 core §5.3. */
export function settlementResponse({ transaction, network, payer, amount }: Receipt): JsonObject {
  return { success: true, transaction, network, payer, amount }
}

export function failureResponse({ network, payer }: Entry, errorReason: ErrorCode): JsonObject {
  return { success: false, errorReason, transaction: '', network, payer }
}
