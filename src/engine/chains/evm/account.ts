import type { Address } from '../../base/address.ts'
import type { Bid } from './fees.ts'

/** An account that pays the gas. */
export interface Account {
  readonly address: Address
  /** Serialises and signs an EIP-1559 transaction. */
  readonly sign: (transaction: UnsignedTransaction) => SignedTransaction
}

export interface SignedTransaction {
  readonly raw: `0x${string}`
  readonly hash: string
}

interface UnsignedTransaction extends Bid {
  readonly chainId: number
  readonly nonce: number
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
}

/** Gas limit of a token transfer by signature on every supported network, also for contract wallets. */
export const GAS = 200_000n
export const GAS_CONTRACT_WALLET = 600_000n
