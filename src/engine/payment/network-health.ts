import type { Network } from '../base/networks.ts'

/** State of settlement on one network, in this process. Amounts of the coin have 18 decimals (wei) on every network. */
export interface NetworkHealth {
  readonly network: Pick<Network, 'id' | 'title' | 'coin'>
  /** Wei by the address of the signer, of those that have sent something. */
  readonly balances: ReadonlyMap<string, bigint>
  /** Transactions of ours that are in no block yet, and the age of the oldest in milliseconds. */
  readonly unmined: { readonly count: number; readonly age: number }
  /** Number of transactions mined since the start, and their cost in wei. */
  readonly totals: { readonly transactions: number; readonly gasSpent: bigint }
  /** Transactions that reverted since the start. */
  readonly reverts: number
  /** Wei that reverted transactions have cost in the last hour, over all processes. */
  readonly gasLost: bigint
  /** Whether the last request to its node had no answer: that may be over, as payments tell. */
  readonly isNodeAway?: boolean
  /** Why nothing can be sold on it now, for operators and visitors. */
  readonly trouble: string | undefined
}
