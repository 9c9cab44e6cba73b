import { getCompiledTransactionMessageDecoder, getTransactionDecoder, type Transaction } from '@solana/kit'
import { encodeBase58 } from '../../engine/base/base58.ts'
import { COMPUTE_BUDGET_PROGRAM } from '../../engine/base/svm-programs.ts'
import { isSignedBy } from '../../engine/base/svm-signature.ts'

/** A transaction as it was sent, and what it says. */
export interface SentTransaction {
  readonly wire: Uint8Array
  readonly transaction: Transaction
  readonly message: StaticMessage
  /** Of the account that pays the fee: the name of the transaction; undefined when it is not signed by it. */
  readonly signature: string | undefined
  readonly accounts: readonly string[]
  readonly blockhash: string
}

type Message = ReturnType<ReturnType<typeof getCompiledTransactionMessageDecoder>['decode']>
type StaticMessage = Exclude<Message, { readonly version: 1 }>

/** Lamports for each signature. */
const FEE_PER_SIGNATURE = 5_000n
const [SET_UNIT_LIMIT, SET_UNIT_PRICE] = [2, 3]
const UNITS_PER_INSTRUCTION = 200_000n

/** Throws when the bytes are no transaction. */
export function readTransaction(wire: Uint8Array): SentTransaction {
  const transaction = getTransactionDecoder().decode(wire)
  const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes)
  if (message.version === 1) throw new TypeError('version 1 is not known here')
  const [first] = Object.values(transaction.signatures)
  return {
    wire,
    transaction,
    message,
    signature: first ? encodeBase58(Uint8Array.from(first)) : undefined,
    accounts: message.staticAccounts,
    blockhash: message.lifetimeToken,
  }
}

/** Whether every account that has to sign has signed this message. */
export function isSigned({ transaction: { messageBytes, signatures } }: SentTransaction): boolean {
  const message = Uint8Array.from(messageBytes)
  return Object.entries(signatures).every(
    ([account, signature]) => signature !== null && isSignedBy(account, Uint8Array.from(signature), message),
  )
}

/** Lamports that the first account pays, whether the transaction succeeds or fails. */
export function feeOf({ message, accounts }: SentTransaction): bigint {
  let [limit, price, others]: [bigint | undefined, bigint, bigint] = [undefined, 0n, 0n]
  for (const { programAddressIndex, data } of message.instructions) {
    if (accounts[programAddressIndex] !== COMPUTE_BUDGET_PROGRAM) {
      others += 1n
      continue
    }
    const bytes = Buffer.from(data ?? [])
    if (bytes[0] === SET_UNIT_LIMIT) limit = BigInt(bytes.readUInt32LE(1))
    if (bytes[0] === SET_UNIT_PRICE) price = bytes.readBigUInt64LE(1)
  }
  const units = limit ?? others * UNITS_PER_INSTRUCTION
  const priority = (units * price + 999_999n) / 1_000_000n
  return FEE_PER_SIGNATURE * BigInt(message.header.numSignerAccounts) + priority
}
