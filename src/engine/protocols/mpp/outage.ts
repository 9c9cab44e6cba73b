import {
  BaseError,
  HttpRequestError,
  InternalRpcError,
  LimitExceededRpcError,
  ResourceUnavailableRpcError,
  RpcError,
  TimeoutError,
} from 'viem'

/** Whether the node could not be asked, or could not say: nothing is wrong with the payment then. */
export function isOutage(fault: unknown): boolean {
  return fault instanceof BaseError && fault.walk(isOwnTrouble) !== null
}

function isOwnTrouble(fault: unknown): boolean {
  if (fault instanceof HttpRequestError || fault instanceof TimeoutError) return true
  if (fault instanceof LimitExceededRpcError || fault instanceof ResourceUnavailableRpcError) return true
  if (fault instanceof InternalRpcError) return !ABOUT_PAYMENT.test(fault.details)
  return fault instanceof RpcError && LOST_STATE.test(fault.details)
}

/** Tempo nodes give the payer’s mistakes as internal errors too. */
const ABOUT_PAYMENT = /revert|transaction|nonce|valid_before|balance|funds/i

/** A node that lacks the block it is asked about. */
const LOST_STATE = /(?:header|block|state) not (?:found|available)|unknown block|missing trie/i
