import { createHash } from 'node:crypto'
import { readTransaction, writeTransaction, SIGNATURE_BYTES } from '../../chains/svm/transaction.ts'
import type { SvmTransaction } from '../../chains/svm/transaction.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { malformed, type Malformed, type PaymentPayload } from '../payload.ts'
import { readTransfer, type SvmTransfer } from './transfer.ts'

/** What the buyer has signed. */
export interface SvmPayload {
  readonly transaction: SvmTransaction
  readonly transfer: SvmTransfer
  /**
   * SHA-256 of the signed message, in hexadecimal: the same for every copy, whatever its encoding and whatever stands in
   * the place of the fee payer’s signature.
   */
  readonly digest: string
}

type DecodedSvm =
  | { readonly kind: 'payload'; readonly payload: SvmPayload }
  | { readonly kind: 'refused'; readonly code: ErrorCode; readonly detail: string }
  | Malformed

/** Longer than the base64 of the largest transaction. */
const LONGEST = 2_048
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** Reads the `payload` of scheme exact on Solana: `transaction`, in base64. */
export function readSvm({ payload }: Pick<PaymentPayload, 'payload'>): DecodedSvm {
  const { transaction: text } = payload
  if (typeof text !== 'string' || text.length > LONGEST || !BASE64.test(text))
    return malformed('/payload/transaction is not a transaction in base64')
  const read = readTransaction(Buffer.from(text, 'base64'))
  if (read.kind === 'malformed') return malformed(`/payload/transaction cannot be read: ${read.detail}`)
  const { transaction } = read
  const layout = readTransfer(transaction)
  if (layout.kind === 'refused')
    return {
      kind: 'refused',
      code: 'invalid_exact_svm_payload_transaction',
      detail: `the transaction cannot be taken: ${layout.detail}`,
    }
  return {
    kind: 'payload',
    payload: { transaction, transfer: layout.transfer, digest: digestOf(transaction) },
  }
}

export function digestOf({ message }: Pick<SvmTransaction, 'message'>): string {
  return createHash('sha256').update(message).digest('hex')
}

/** In base64, with these signatures of the fee payer, or none. */
export function encodeTransaction(
  { message, signatures: [, ...others] }: Pick<SvmTransaction, 'message' | 'signatures'>,
  ofFeePayer: Uint8Array = new Uint8Array(SIGNATURE_BYTES),
): string {
  return Buffer.from(writeTransaction({ message, signatures: [ofFeePayer, ...others] })).toString('base64')
}
