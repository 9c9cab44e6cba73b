import { privateKeyToAccount } from 'viem/accounts'
import { keccak256 } from 'viem/utils'
import type { Address } from '../../address.ts'
import type { Bid } from './gas.ts'

/** An account that pays the gas. */
export interface Account {
  readonly address: Address
  /** Serialises and signs an EIP-1559 transaction. */
  readonly sign: (
    transaction: UnsignedTransaction,
  ) => Promise<{ readonly raw: `0x${string}`; readonly hash: `0x${string}` }>
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
  const account = privateKeyToAccount(key)
  return {
    address: account.address,
    sign: async (transaction) => {
      const raw = await account.signTransaction({ type: 'eip1559', ...transaction })
      return { raw, hash: keccak256(raw) }
    },
  }
}
