import { signRecoverable } from 'tiny-secp256k1'
import { privateKeyToAddress } from 'viem/accounts'
import { bytesToHex, hexToBytes, keccak256, serializeTransaction } from 'viem/utils'
import type { Address } from '../../address.ts'
import type { Bid } from './gas.ts'

/** An account that pays the gas. */
export interface Account {
  readonly address: Address
  /** Serialises and signs an EIP-1559 transaction. */
  readonly sign: (transaction: UnsignedTransaction) => {
    readonly raw: `0x${string}`
    readonly hash: `0x${string}`
  }
}

export interface UnsignedTransaction extends Bid {
  readonly chainId: number
  readonly nonce: number
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
}

/** An account whose private key is in this process. */
export function openAccount(key: `0x${string}`): Account {
  const secret = hexToBytes(key)
  return {
    address: privateKeyToAddress(key),
    sign: (unsigned) => {
      const transaction = { type: 'eip1559', ...unsigned } as const
      const digest = keccak256(serializeTransaction(transaction), 'bytes')
      // Compiled code: a fifth of the time, which every payment of a round waits for.
      const { signature, recoveryId } = signRecoverable(digest, secret)
      const [r, s] = [bytesToHex(signature.subarray(0, 32)), bytesToHex(signature.subarray(32))]
      const raw = serializeTransaction(transaction, { r, s, yParity: recoveryId })
      return { raw, hash: keccak256(raw) }
    },
  }
}
