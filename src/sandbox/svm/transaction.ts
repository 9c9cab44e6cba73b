import { createPublicKey, verify } from 'node:crypto'
import { getCompiledTransactionMessageDecoder, getTransactionDecoder, type Transaction } from '@solana/kit'
import { base58 } from '../../vendor/base58.ts'

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
const COMPUTE_BUDGET = 'ComputeBudget111111111111111111111111111111'
const [SET_UNIT_LIMIT, SET_UNIT_PRICE] = [2, 3]
const UNITS_PER_INSTRUCTION = 200_000n
/** DER of an Ed25519 public key, without its 32 bytes. */
const PUBLIC_KEY_HEADER = Buffer.from('302a300506032b6570032100', 'hex')

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
    signature: first ? base58.encode(Uint8Array.from(first)) : undefined,
    accounts: message.staticAccounts,
    blockhash: message.lifetimeToken,
  }
}

/** Whether every account that has to sign has signed this message. */
export function isSigned({ transaction: { messageBytes, signatures } }: SentTransaction): boolean {
  return Object.entries(signatures).every(([account, signature]) => {
    if (signature === null) return false
    const key = createPublicKey({
      key: Buffer.concat([PUBLIC_KEY_HEADER, base58.decode(account)]),
      format: 'der',
      type: 'spki',
    })
    return verify(null, Uint8Array.from(messageBytes), key, Uint8Array.from(signature))
  })
}

/** Lamports that the first account pays, whether the transaction succeeds or fails. */
export function feeOf({ message, accounts }: SentTransaction): bigint {
  let [limit, price, others]: [bigint | undefined, bigint, bigint] = [undefined, 0n, 0n]
  for (const { programAddressIndex, data } of message.instructions) {
    if (accounts[programAddressIndex] !== COMPUTE_BUDGET) {
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
