import type { Clock } from '../../base/poll.ts'
import type { SignedTransaction } from './account.ts'
import type { Chain } from './chain.ts'

export type Broadcast =
  /** In the pool of the node. */
  | 'taken'
  /** The node refuses the transaction and does not have it. */
  | 'refused'
  /** Refused because the account's balance is too low. */
  | 'unfunded'
  /** The pool holds another transaction with its nonce. */
  | 'occupied'
  /** No answer, or one that proves nothing. */
  | 'unknown'

/** Milliseconds before each further attempt. */
const PAUSES_MS = [50, 200, 800] as const

/** A longer failed attempt was not a connection cut short: the node hangs. */
const INSISTENCE_MS = 2_000

/** Upper bound of the time of a broadcast: its repeated attempts and the timeout of the last one. */
export const BROADCAST_MS = INSISTENCE_MS + 11_000

/**
 * Sends a signed transaction to the node, and the same bytes again when a connection breaks without an answer.
 * Repeated bytes are executed once, and a lost transaction would leave a gap below all later ones.
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
    // Any other answer may come from another node behind the same address.
    if ((await submit(chain, transaction)) === 'taken') return 'taken'
  }
  return 'unknown'
}

/** A refusal proves nothing: a node may give one after accepting the same bytes. Asks it for the transaction. */
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

/** Any other refusal may answer bytes that a proxy has sent twice ("nonce too low": the first were mined). */
function refusalOf(message: string): Broadcast {
  if (/replacement|could not replace/i.test(message)) return 'occupied'
  if (/insufficient funds/i.test(message)) return 'unfunded'
  const out = /intrinsic gas|gas too low|exceeds block gas limit|less than block base fee|underpriced/i
  return out.test(message) ? 'refused' : 'unknown'
}

/** The node already has this transaction, so it counts as sent. */
export function isKnown(message: string): boolean {
  return /already known|already imported|known transaction|already exists/i.test(message)
}
