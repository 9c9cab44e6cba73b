import { blockAt } from './block-at-time.ts'
import type { Block, Chain } from './chain.ts'
import type { Log, LogFilter } from './event-log.ts'

/** Most blocks asked for at once; providers that allow fewer say so. */
const WIDEST = 5_000n
const NARROWER = 10n
/** Most requests for one payment. */
const MOST = 100
/** How far our clock may be ahead of the chain’s, in seconds. */
const SKEW = 30n

/** `none`: every block was searched. `unknown`: the chain cannot be asked, or there are too many blocks. */
export type FoundLog =
  { readonly kind: 'found'; readonly log: Log } | { readonly kind: 'none' } | { readonly kind: 'unknown' }

/** The blocks of a search: from a time in milliseconds since the epoch to a block. */
interface Searched {
  readonly since: number
  readonly newest: Block
}

/**
 * The log that `choose` finds among those of a filter; `unknown`: it cannot tell. What is searched for is recent in most
 * cases, so the newest blocks are searched first. After them the search goes forward from `since`, since a payment is used
 * soon after it was taken or not at all.
 */
export async function findLog(
  chain: Chain,
  filter: LogFilter,
  { since, newest }: Searched,
  choose: (logs: readonly Log[]) => Promise<Log | undefined | 'unknown'>,
): Promise<FoundLog> {
  const near = newest.number < WIDEST ? 0n : newest.number - WIDEST + 1n
  const recent = await chain.logs(filter, { from: near, to: newest.number })
  if (recent.kind === 'unreachable') return UNKNOWN
  if (recent.kind === 'result') {
    const chosen = await choose(recent.result)
    if (chosen !== undefined) return asFound(chosen)
  }
  const last = recent.kind === 'result' ? near - 1n : newest.number
  let width = recent.kind === 'result' ? WIDEST : WIDEST / NARROWER
  let first = await blockAt(chain, BigInt(Math.floor(since / 1000)) - SKEW, newest)
  for (let asked = 0; first !== undefined && first <= last && asked < MOST; asked += 1) {
    const end: bigint = first + width - 1n < last ? first + width - 1n : last
    const answer = await chain.logs(filter, { from: first, to: end })
    if (answer.kind === 'result') {
      const chosen = await choose(answer.result)
      if (chosen !== undefined) return asFound(chosen)
      first = end + 1n
    } else if (answer.kind === 'refused' && width > 1n) width = width > NARROWER ? width / NARROWER : 1n
    else return UNKNOWN
  }
  return first === undefined || first <= last ? UNKNOWN : { kind: 'none' }
}

const UNKNOWN: FoundLog = { kind: 'unknown' }

function asFound(chosen: Log | 'unknown'): FoundLog {
  return chosen === 'unknown' ? UNKNOWN : { kind: 'found', log: chosen }
}
