import type { Hex, TransactionReceipt } from 'viem'
import { until } from './until.ts'

interface ReceiptReader {
  getTransactionReceipt(call: { readonly hash: Hex }): Promise<TransactionReceipt>
}

/**
 * Waits for the block of a transaction. viem looks once a block, and a local chain makes a block for a
 * transaction only: a receipt that comes a moment after its block would never be seen.
 */
export function receiptOf(chain: ReceiptReader, hash: Hex): Promise<TransactionReceipt> {
  return until(`a block has ${hash}`, () =>
    chain.getTransactionReceipt({ hash }).catch((error: unknown) => {
      if (isMissing(error)) return undefined
      throw error
    }),
  )
}

/** By its name: the client may be of another copy of viem. */
function isMissing(error: unknown): boolean {
  return error instanceof Error && error.name === 'TransactionReceiptNotFoundError'
}
