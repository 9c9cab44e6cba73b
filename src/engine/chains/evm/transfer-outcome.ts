import type { Block, Chain, TransactionReceipt } from './chain.ts'

/** What became of a transfer that its payer has signed. */
export type TransferOutcome =
  /** A transaction, ours or anybody’s, has moved its money. */
  | { readonly kind: 'moved'; readonly transaction: string; readonly receipt: TransactionReceipt }
  /** Nobody can carry it out any more: it was canceled, used for another transfer, or is too old, as of a block. */
  | { readonly kind: 'void'; readonly block: Block }
  /** It was used or canceled too far from the time that is known to find where. */
  | { readonly kind: 'used' }

/** A node, and how many blocks deep a transaction counts. */
export interface ConfirmedChain {
  readonly chain: Chain
  readonly confirmations: number
}

/** The newest block that is so deep; undefined when the node does not say. */
export async function newestThatCounts(chain: Chain, confirmations: number): Promise<Block | undefined> {
  const head = await chain.block('latest')
  if (head.kind !== 'result') return undefined
  if (confirmations === 1) return head.result
  const number = head.result.number - BigInt(confirmations) + 1n
  const block = number < 0n ? undefined : await chain.block(number)
  return block?.kind === 'result' ? block.result : undefined
}
