import type { Chain } from '../evm/chain.ts'

export type Broadcast =
  /** In the pool of the node. */
  | 'taken'
  /** The node says that no pool can hold it, and does not have it. */
  | 'refused'
  /** As refused: the account has too little for it. */
  | 'unfunded'
  /** The pool holds another transaction with its nonce. */
  | 'occupied'
  /** The node has given no answer, or one that proves nothing. */
  | 'unknown'

/** What a broadcast may wait for. */
export interface Clock {
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

export interface SignedTransaction {
  readonly raw: `0x${string}`
  readonly hash: string
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
export async function broadcast(
  chain: Chain,
  transaction: SignedTransaction,
  { now, sleep }: Clock,
): Promise<Broadcast> {
  const begun = now()
  const outcome = await submit(chain, transaction)
  if (outcome !== 'unknown') return outcome
  for (const pause of PAUSES_MS) {
    if (now() - begun + pause > INSISTENCE_MS) break
    await sleep(pause)
    // Any other answer is that of a node which may not be the one that was asked first.
    if ((await submit(chain, transaction)) === 'taken') return 'taken'
  }
  return 'unknown'
}

/** A refusal is no proof: a node may give one after it has taken the same bytes. It is asked for the transaction. */
async function submit(chain: Chain, { raw, hash }: SignedTransaction): Promise<Broadcast> {
  const answer = await chain.broadcast(raw)
  if (answer.kind === 'result') return 'taken'
  if (answer.kind === 'unreachable') return 'unknown'
  const { message } = answer
  if (isKnown(message)) return 'taken'
  const refusal = refusalOf(message)
  if (refusal === 'unknown') return 'unknown'
  const known = await chain.knows(hash)
  if (known.kind !== 'result') return 'unknown'
  return known.result ? 'taken' : refusal
}

/** Any other refusal may be the second answer to bytes that a proxy has sent twice ("nonce too low": the first were mined). */
function refusalOf(message: string): Broadcast {
  if (/replacement|could not replace/i.test(message)) return 'occupied'
  if (/insufficient funds/i.test(message)) return 'unfunded'
  const out = /intrinsic gas|gas too low|exceeds block gas limit|less than block base fee|underpriced/i
  return out.test(message) ? 'refused' : 'unknown'
}

/** The node has this very transaction already: as good as sent. */
export function isKnown(message: string): boolean {
  return /already known|already imported|known transaction|already exists/i.test(message)
}
