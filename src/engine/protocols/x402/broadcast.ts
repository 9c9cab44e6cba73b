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

/** Hands a signed transaction to the node, once. */
export async function broadcast(chain: Chain, raw: `0x${string}`): Promise<Broadcast> {
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
