import type { Block, Chain, Log } from '../../chains/evm/rpc.ts'
import { addressTopic, blockAt } from '../../chains/evm/logs.ts'
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, type Movement } from './token.ts'

/** Most blocks asked for at once; providers that allow fewer say so. */
const WIDEST = 5_000n
const NARROWER = 10n
/** Most questions for one payment. */
const MOST = 100
/** By how much our clock may be ahead of the chain’s, in seconds. */
const SKEW = 30n

/** Whether a log tells that the authorization was canceled; else it was used. */
export function isCancellation({ topics }: Log): boolean {
  return topics[0] === AUTHORIZATION_CANCELED
}

/**
 * The log of how an authorization that cannot be used any more was used up. `since`: milliseconds since the epoch,
 * before which it was not; `newest`: the last block that counts. Undefined when the chain cannot be asked, or the log is
 * too far from `since` to be found.
 *
 * Most are young: the newest blocks are asked first. Else the search goes forward from `since`, for a payment is used
 * soon after it was taken or not at all.
 */
export async function findUse(
  chain: Chain,
  { token, from, nonce }: Movement,
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
