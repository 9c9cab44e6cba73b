import type { FailedTransactionMetadata } from 'litesvm'
import type { Json } from '../../engine/base/json.ts'

/** Why a transaction fails, as nodes state it: a word, or an object with one member. */
export type TransactionError = string | { readonly [kind: string]: Json }

/** The virtual machine states its errors as numbers of enumerations it does not export: its text has the names. */
export function errorOf(failed: FailedTransactionMetadata): TransactionError {
  const text = failed.toString()
  const [, index, reason = '', code] =
    /\berr: InstructionError\((\d+), (\w+)(?:\((\d+)\))?\)/.exec(text) ?? []
  if (index !== undefined)
    return { InstructionError: [Number(index), code === undefined ? reason : { [reason]: Number(code) }] }
  const [, kind = 'GenericError', account] = /\berr: (\w+)(?: \{ account_index: (\d+) \})?/.exec(text) ?? []
  return account === undefined ? kind : { [kind]: { account_index: Number(account) } }
}

const SENTENCES: Readonly<Record<string, string>> = {
  AccountNotFound: 'Attempt to debit an account but found no record of a prior credit.',
  AlreadyProcessed: 'This transaction has already been processed',
  BlockhashNotFound: 'Blockhash not found',
  InsufficientFundsForFee: 'Insufficient funds for fee',
}

/** The error in the words of a node. */
export function sentenceOf(error: TransactionError): string {
  if (typeof error === 'string') return SENTENCES[error] ?? error
  const { InstructionError } = error
  if (!Array.isArray(InstructionError)) return Object.keys(error).join()
  const [index, reason] = InstructionError
  const cause =
    typeof reason === 'object' && reason !== null && 'Custom' in reason
      ? `custom program error: 0x${Number(reason['Custom']).toString(16)}`
      : String(reason)
  return `Error processing Instruction ${String(index)}: ${cause}`
}
