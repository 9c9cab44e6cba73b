import type { BlockReference, Receipt } from '../../ledger/payment-record.ts'
import type { Block, Chain, TransactionReceipt } from './chain.ts'

/** Blocks, its own included, after which a block counts as final: two epochs of Ethereum. */
export const FINAL_BLOCKS = 64

/** Blocks, its own included, that a late settlement must have before it counts. */
const LATE_BLOCKS = 4n

/**
 * Whether a settlement that a block shows may count: a block that came so late that nobody could send the payment again
 * has to be deeper. Asks the node only from `late` on, in milliseconds since the epoch.
 */
export async function isDeepEnough(
  { chain, now }: { readonly chain: Chain; readonly now: () => number },
  { block: number }: Pick<TransactionReceipt, 'block'>,
  late: number,
): Promise<boolean> {
  if (now() < late) return true
  const [head, mined] = await Promise.all([chain.blockNumber(), chain.block(number)])
  if (head.kind !== 'result' || mined.kind !== 'result') return false
  return Number(mined.result.timestamp) * 1000 < late || head.result - number + 1n >= LATE_BLOCKS
}

/** What a look at a block has shown. */
export type BlockStanding =
  | { readonly kind: 'final' }
  /** `progress`: the share of the blocks it takes to be final, 0 to 1. */
  | { readonly kind: 'valid'; readonly progress: number }
  /** Another block has its number. */
  | { readonly kind: 'undone' }
  /** The node cannot say. */
  | { readonly kind: 'unknown' }

export type BlockLook = (block: BlockReference) => BlockStanding

export const CANNOT_LOOK: BlockLook = () => ({ kind: 'unknown' })

/**
 * The block of a transaction, for its receipt; none when the node gives no hash, without which it cannot be compared
 * later.
 */
export function blockOf({
  block: number,
  blockHash: hash,
}: Pick<TransactionReceipt, 'block' | 'blockHash'>): Pick<Receipt, 'block'> {
  return hash === '' ? {} : { block: { number: Number(number), hash } }
}

/** Asks for each of these blocks once, however many payments it contains. */
export async function lookAtBlocks(
  chain: Chain,
  confirmations: number,
  blocks: readonly BlockReference[],
): Promise<BlockLook> {
  const head = await chain.block('latest')
  if (head.kind !== 'result') return CANNOT_LOOK
  const numbers = Array.from(new Set(blocks.map(({ number }) => number)))
  const seen = new Map(
    await Promise.all(
      numbers.map(async (number) => {
        const answer = await chain.block(BigInt(number))
        return [number, answer.kind === 'result' ? answer.result.hash : undefined] as const
      }),
    ),
  )
  const depths = Math.max(confirmations, FINAL_BLOCKS)
  return ({ number, hash }) => {
    const found = seen.get(number)
    const depth = Number(head.result.number) - number + 1
    // This node is behind the one that has shown the block.
    if (found === undefined || depth < 1) return { kind: 'unknown' }
    if (found.toLowerCase() !== hash.toLowerCase()) return { kind: 'undone' }
    return depth >= depths ? { kind: 'final' } : { kind: 'valid', progress: depth / depths }
  }
}

/**
 * Whether neither this block nor a later one can carry an authorization out: the token takes it only in blocks older
 * than `validBefore`, in milliseconds since the epoch.
 */
export function isOver({ timestamp }: Block, validBefore: number): boolean {
  return Number(timestamp) * 1000 >= validBefore
}
