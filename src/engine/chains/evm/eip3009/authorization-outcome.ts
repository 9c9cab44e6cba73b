import { blockAt } from '../block-at-time.ts'
import type { Block, Chain, TransactionReceipt } from '../chain.ts'
import type { Log } from '../event-log.ts'
import { addressTopic } from '../transfer-log.ts'
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, containsTransfer } from './authorization-log.ts'
import { isUsed, type ExpectedTransfer } from './token-state.ts'

/** What became of an authorization. */
export type AuthorizationOutcome =
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

/**
 * What became of an authorization, by what the chain shows in the newest block that has the confirmations asked for;
 * undefined while the outcome may change or the node cannot say: ask again. The proof is the log of its use with its
 * transfer, in a transaction of any account.
 *
 * `since`: milliseconds since the epoch, before which it was not used. `isVoid` says of an authorization that is unused
 * up to a block whether it can never be used.
 *
 * All requests name one block by its number: several nodes may be behind one address, and a node that does not have the
 * block yet says so instead of answering for an older state.
 */
export async function authorizationOutcome(
  { chain, confirmations }: ConfirmedChain,
  expected: ExpectedTransfer,
  since: number,
  isVoid: (block: Block) => boolean | Promise<boolean>,
): Promise<AuthorizationOutcome | undefined> {
  const block = await newestThatCounts(chain, confirmations)
  if (block === undefined) return undefined
  const used = await isUsed(chain, expected, block.number)
  if (used === undefined) return undefined
  if (used) return outcomeOfUse(chain, expected, since, block)
  if (!(await isVoid(block))) return undefined
  // It may be used in a block that does not count yet, or that was mined between the two requests: not every node
  // answers for exactly the block that it is asked for.
  return (await isUsed(chain, expected)) === false ? { kind: 'void', block } : undefined
}

async function outcomeOfUse(
  chain: Chain,
  expected: ExpectedTransfer,
  since: number,
  block: Block,
): Promise<AuthorizationOutcome | undefined> {
  const log = await findAuthorization(chain, expected, since, block)
  if (log === undefined) return { kind: 'used' }
  if (log.topics[0] === AUTHORIZATION_CANCELED) return { kind: 'void', block }
  const { transactionHash: transaction } = log
  const receipt = await chain.receipt(transaction)
  if (receipt.kind !== 'result' || receipt.result === null) return undefined
  // Otherwise it was used for another transfer that was signed under the same nonce.
  return containsTransfer(receipt.result.logs, expected)
    ? { kind: 'moved', transaction, receipt: receipt.result }
    : { kind: 'void', block }
}

async function newestThatCounts(chain: Chain, confirmations: number): Promise<Block | undefined> {
  const head = await chain.block('latest')
  if (head.kind !== 'result') return undefined
  if (confirmations === 1) return head.result
  const number = head.result.number - BigInt(confirmations) + 1n
  const block = number < 0n ? undefined : await chain.block(number)
  return block?.kind === 'result' ? block.result : undefined
}

/** Most blocks asked for at once; providers that allow fewer say so. */
const WIDEST = 5_000n
const NARROWER = 10n
/** Most requests for one payment. */
const MOST = 100
/** How far our clock may be ahead of the chain’s, in seconds. */
const SKEW = 30n

/**
 * The log of the use or the cancellation of an authorization. `since`: milliseconds since the epoch, before which it
 * was not; `newest`: the last block that counts. Undefined when the chain cannot be asked, or the log is too far from
 * `since` to be found.
 *
 * Most authorizations are recent, so the newest blocks are searched first. After them the search goes forward from
 * `since`, since a payment is used soon after it was taken or not at all.
 */
async function findAuthorization(
  chain: Chain,
  { token, from, nonce }: ExpectedTransfer,
  since: number,
  newest: Block,
): Promise<Log | undefined> {
  const topics = [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], addressTopic(from), nonce]
  const ask = (first: bigint, last: bigint) =>
    chain.logs({ address: token, topics }, { from: first, to: last })
  const near = newest.number < WIDEST ? 0n : newest.number - WIDEST + 1n
  const recent = await ask(near, newest.number)
  if (recent.kind === 'unreachable') return undefined
  if (recent.kind === 'result' && recent.result.length > 0) return recent.result[0]
  const last = recent.kind === 'result' ? near - 1n : newest.number
  let width = recent.kind === 'result' ? WIDEST : WIDEST / NARROWER
  let first = await blockAt(chain, BigInt(Math.floor(since / 1000)) - SKEW, newest)
  for (let asked = 0; first !== undefined && first <= last && asked < MOST; asked += 1) {
    const end: bigint = first + width - 1n < last ? first + width - 1n : last
    const answer = await ask(first, end)
    if (answer.kind === 'result') {
      if (answer.result.length > 0) return answer.result[0]
      first = end + 1n
    } else if (answer.kind === 'refused' && width > 1n) width = width > NARROWER ? width / NARROWER : 1n
    else return undefined
  }
  return undefined
}
