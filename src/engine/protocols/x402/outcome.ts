import type { Settlement } from '../protocol.ts'
import type { Block, Chain } from '../../chains/evm/rpc.ts'
import type { Lookout } from './bench.ts'
import { isUsed } from './simulation.ts'
import { showsMovement, type Movement } from './token.ts'
import { findUse, isCancellation } from './use.ts'

/**
 * What became of an authorization, by what the chain shows in the newest block that has the confirmations asked for;
 * undefined while it may still become something else, or the node cannot say: to be asked again. The truth is the log
 * of its use with its transfer, in any transaction, whoever has sent it.
 *
 * `since`: milliseconds since the epoch, before which it was not used. `hasFailed` says of one that is unused up to a
 * block whether it stays so.
 *
 * Everything is asked of one block, by its number: behind one address there may be several nodes, and one that has not
 * got there yet says so instead of answering for an older state.
 */
export async function outcomeOf(
  lookout: Lookout,
  movement: Movement,
  since: number,
  hasFailed: (block: Block) => boolean | Promise<boolean>,
): Promise<Settlement | undefined> {
  const { chain, limits } = lookout
  const block = await newestThatCounts(chain, limits.confirmations)
  if (block === undefined) return undefined
  const used = await isUsed(chain, movement, block.number)
  if (used === undefined) return undefined
  if (used) return outcomeOfUse(lookout, movement, since, block)
  if (await isUsedAbove(chain, movement, limits.confirmations)) return undefined
  return (await hasFailed(block)) ? FAILED : undefined
}

async function outcomeOfUse(
  lookout: Lookout,
  movement: Movement,
  since: number,
  block: Block,
): Promise<Settlement | undefined> {
  const log = await findUse(lookout.chain, movement, since, block)
  if (log === undefined) return UNCONFIRMED
  if (isCancellation(log)) return FAILED
  const receipt = await lookout.chain.receipt(log.transactionHash)
  if (receipt.kind !== 'result' || receipt.result === null) return undefined
  // Else it was used for another transfer that was signed under the same nonce.
  return showsMovement(receipt.result.logs, movement)
    ? settled(lookout, movement, log.transactionHash)
    : FAILED
}

async function newestThatCounts(chain: Chain, confirmations: number): Promise<Block | undefined> {
  const head = await chain.block('latest')
  if (head.kind !== 'result') return undefined
  if (confirmations === 1) return head.result
  const number = head.result.number - BigInt(confirmations) + 1n
  const block = number < 0n ? undefined : await chain.block(number)
  return block?.kind === 'result' ? block.result : undefined
}

/** Whether it is used in a block that does not count yet, as far as is known. */
async function isUsedAbove(chain: Chain, movement: Movement, confirmations: number): Promise<boolean> {
  return confirmations > 1 && (await isUsed(chain, movement)) !== false
}

/** No later block can carry an authorization out: the token takes it only in blocks older than its end. */
export function isOver({ timestamp }: Block, validBefore: number): boolean {
  return Number(timestamp) * 1000 >= validBefore
}

export const UNCONFIRMED: Settlement = {
  kind: 'unknown',
  detail: 'the network has not confirmed the payment yet',
}

const FAILED: Settlement = {
  kind: 'failed',
  refusal: { code: 'settlement_failed', detail: 'the transfer was not carried out; nothing was charged' },
}

export function settled({ networkId }: Lookout, { from, value }: Movement, transaction: string): Settlement {
  const receipt = { transaction, network: networkId, payer: from, amount: value.toString() }
  return { kind: 'settled', receipt }
}
