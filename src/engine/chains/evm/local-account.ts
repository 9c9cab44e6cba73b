import { keccak256 } from 'js-sha3'
import { signRecoverable } from 'tiny-secp256k1'
import { hexToBytes, serializeTransaction, bytesToHex } from '../../../vendor/viem.ts'
import { privateKeyToAddress } from '../../../vendor/viem-accounts.ts'
import type { Account } from './account.ts'

/** An account whose private key is in this process. viem takes four to five times as long to hash and sign. */
export function openAccount(key: `0x${string}`): Account {
  return {
    address: privateKeyToAddress(key),
    sign: (unsigned) => {
      const transaction = { type: 'eip1559', ...unsigned } as const
      const hash = (hex: string): string => keccak256(Buffer.from(hex.slice(2), 'hex'))
      const digest = hexToBytes(`0x${hash(serializeTransaction(transaction))}`)
      const { signature, recoveryId } = signRecoverable(digest, hexToBytes(key))
      const [r, s] = [bytesToHex(signature.subarray(0, 32)), bytesToHex(signature.subarray(32))]
      const raw = serializeTransaction(transaction, { r, s, yParity: recoveryId })
      return { raw, hash: `0x${hash(raw)}` }
    },
  }
}
