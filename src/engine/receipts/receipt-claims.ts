import { hash } from 'node:crypto'
import { compact, type JsonObject } from '../base/json.ts'
import type { PaymentRecord, Receipt } from '../ledger/payment-record.ts'

/**
 * What the official receipt states: x402, extension offer-receipt, §5.2. Without the transaction, as the specification
 * recommends: the Ratecard receipt has it. The members are in the order of RFC 8785.
 */
export function x402Receipt({ network, payer, resource, settledAt }: PaymentRecord): JsonObject | undefined {
  if (resource === undefined || settledAt === undefined) return undefined
  return { issuedAt: Math.floor(settledAt / 1000), network, payer, resourceUrl: resource, version: 1 }
}

/** What the Ratecard receipt states: who has paid how much for which answer. Amounts are in atomic units. */
export function ratecardReceipt(record: PaymentRecord, receipt: Receipt): JsonObject | undefined {
  const { id, operation, resource, network, asset, payer, payee, authorizedAmount, settledAt } = record
  const answer = answerClaim(record)
  if (resource === undefined || settledAt === undefined || answer === undefined) return undefined
  return compact({
    version: 1,
    payment: id,
    operation,
    resource,
    payer,
    payee,
    network,
    asset,
    authorized: authorizedAmount,
    charged: receipt.amount,
    // What a metered price has counted, with its rule.
    usage: receipt.extra?.['usage'],
    transaction: receipt.transaction === '' ? undefined : receipt.transaction,
    answer,
    settled_at: new Date(settledAt).toISOString(),
  })
}

/**
 * SHA-256 of the digest of the answer, which is that of the payment’s id, a line feed and the body. Anybody who knows the digest
 * itself may fetch the answer, and a receipt is shown to others.
 */
function answerClaim({ answer, answerDigest = answer?.digest }: PaymentRecord): string | undefined {
  return answerDigest === undefined ? undefined : hash('sha256', answerDigest, 'base64url')
}
