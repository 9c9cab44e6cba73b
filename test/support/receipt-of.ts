import { setTimeout as delay } from 'node:timers/promises'
import type { Hex, TransactionReceipt } from 'viem'

const PATIENCE_MS = 60_000

interface ReceiptReader {
  getTransactionReceipt(call: { readonly hash: Hex }): Promise<TransactionReceipt>
}

/**
 * Waits for the block of a transaction. viem looks once a block, and a local chain makes a block for a
 * transaction only: a receipt that comes a moment after its block would never be seen.
 */
export async function receiptOf(chain: ReceiptReader, hash: Hex): Promise<TransactionReceipt> {
  const patience = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return await chain.getTransactionReceipt({ hash })
    } catch (error) {
      if (!isMissing(error) || Date.now() > patience) throw error
    }
    await delay(20)
  }
}

/** By its name: the client may be of another copy of viem. */
function isMissing(error: unknown): boolean {
  return error instanceof Error && error.name === 'TransactionReceiptNotFoundError'
}
