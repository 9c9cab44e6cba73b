import type { Address } from '../../base/address.ts'

/** An event of a contract, from a block. */
export interface Log {
  readonly address: Address
  readonly topics: readonly `0x${string}`[]
  readonly data: `0x${string}`
  readonly transactionHash: `0x${string}`
  readonly block: bigint
  /** Position in its block. */
  readonly index: bigint
}

/** Logs of one contract: for each topic one value, several alternatives, or null for any. */
export interface LogFilter {
  readonly address: Address
  readonly topics: readonly (`0x${string}` | readonly `0x${string}`[] | null)[]
}

/** Blocks from the first to the last, both included. */
export interface BlockRange {
  readonly from: bigint
  readonly to: bigint
}
