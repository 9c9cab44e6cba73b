import type { Chain } from '../evm/chain.ts'

export type Broadcast =
  /** In the pool of the node. */
  | 'taken'
  /** No pool can hold it. */
  | 'refused'
  /** The account has too little for it. */
  | 'unfunded'
  /** The node has given no answer, or one that proves nothing. */
  | 'unknown'

/** What a broadcast may wait for. */
export interface Clock {
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** Milliseconds before each further attempt. */
const PAUSES_MS = [50, 200, 800] as const
/** What has taken longer was no connection cut short: the node hangs. */
const INSISTENCE_MS = 2_000
/** A broadcast ends within this time: its further attempts, and the last one’s own timeout. */
export const BROADCAST_MS = INSISTENCE_MS + 11_000

/**
 * Hands a signed transaction to the node, and the same bytes again while a connection breaks without an answer: they are
 * carried out once however often they arrive, and one that never does leaves a gap below all that come after it.
 */
export async function broadcast(chain: Chain, raw: `0x${string}`, { now, sleep }: Clock): Promise<Broadcast> {
  const begun = now()
  const outcome = await handOver(chain, raw)
  if (outcome !== 'unknown') return outcome
  for (const pause of PAUSES_MS) {
    if (now() - begun + pause > INSISTENCE_MS) break
    await sleep(pause)
    // Any other answer is that of a node which may not be the one that was asked first.
    if ((await handOver(chain, raw)) === 'taken') return 'taken'
  }
  return 'unknown'
}

async function handOver(chain: Chain, raw: `0x${string}`): Promise<Broadcast> {
  const answer = await chain.broadcast(raw)
  if (answer.kind === 'result') return 'taken'
  if (answer.kind === 'unreachable') return 'unknown'
  if (isKnown(answer.message)) return 'taken'
  if (isUnfunded(answer.message)) return 'unfunded'
  return isOutOfPool(answer.message) ? 'refused' : 'unknown'
}

/**
 * Refusals after which no pool can hold the transaction. Any other may be the second answer to bytes that a proxy has
 * sent twice ("nonce too low": the first were mined), and proves nothing.
 */
function isOutOfPool(message: string): boolean {
  return /intrinsic gas|gas too low|exceeds block gas limit|less than block base fee|underpriced/i.test(
    message,
  )
}

function isUnfunded(message: string): boolean {
  return /insufficient funds/i.test(message)
}

/** The node has this very transaction already: as good as sent. */
export function isKnown(message: string): boolean {
  return /already known|already imported|known transaction|already exists/i.test(message)
}
