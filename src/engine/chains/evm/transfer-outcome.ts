import type { Block, Chain, TransactionReceipt } from './chain.ts'

/** What became of a transfer that its payer has signed. */
export type TransferOutcome =
  /** A transaction, ours or anybody’s, has moved its money. */
  | {
      readonly kind: 'moved'
      readonly transaction: string
      readonly receipt: TransactionReceipt
      /** Atomic units; undefined: what was signed. */
      readonly amount?: bigint
    }
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
async function newestThatCounts(chain: Chain, confirmations: number): Promise<Block | undefined> {
  const head = await chain.block('latest')
  if (head.kind !== 'result') return undefined
  if (confirmations === 1) return head.result
  const number = head.result.number - BigInt(confirmations) + 1n
  const block = number < 0n ? undefined : await chain.block(number)
  return block?.kind === 'result' ? block.result : undefined
}

/** How a chain shows what became of one nonce that its payer has signed. */
export interface NonceSource {
  /** Whether it was used or canceled, now or up to a block; undefined when the node does not say. */
  readonly isUsed: (block?: bigint) => Promise<boolean | undefined>
  /** What it was used for, up to a block; undefined while the node cannot say. */
  readonly outcomeOfUse: (block: Block) => Promise<TransferOutcome | undefined>
  /** Whether a nonce that is unused up to a block can never be used. */
  readonly isVoid: (block: Block) => boolean | Promise<boolean>
}

/**
 * What became of a signed transfer, by what the chain shows in the newest block that has the confirmations asked for;
 * undefined while the outcome may change or the node cannot say: ask again.
 *
 * All requests name one block by its number: several nodes may be behind one address, and a node that does not have the
 * block yet says so instead of answering for an older state.
 */
export async function outcomeOfNonce(
  { chain, confirmations }: ConfirmedChain,
  { isUsed, outcomeOfUse, isVoid }: NonceSource,
): Promise<TransferOutcome | undefined> {
  const block = await newestThatCounts(chain, confirmations)
  if (block === undefined) return undefined
  const used = await isUsed(block.number)
  if (used === undefined) return undefined
  if (used) return outcomeOfUse(block)
  if (!(await isVoid(block))) return undefined
  // It may be used in a block that does not count yet, or that was mined between the two requests: not every node
  // answers for exactly the block that it is asked for.
  return (await isUsed()) === false ? { kind: 'void', block } : undefined
}
