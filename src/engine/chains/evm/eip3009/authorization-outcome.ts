import type { Block, Chain } from '../chain.ts'
import type { Log } from '../event-log.ts'
import { findLog } from '../find-log.ts'
import { addressTopic } from '../transfer-log.ts'
import { outcomeOfNonce, type ConfirmedChain, type TransferOutcome } from '../transfer-outcome.ts'
import { AUTHORIZATION_CANCELED, AUTHORIZATION_USED, containsTransfer } from './authorization-log.ts'
import { isUsed, type ExpectedTransfer } from './token-state.ts'

/**
 * What became of an authorization, as `outcomeOfNonce` says it. The proof is the log of its use with its transfer, in a
 * transaction of any account.
 *
 * `since`: milliseconds since the epoch, before which it was not used. `isVoid` says of an authorization that is unused
 * up to a block whether it can never be used.
 */
export function authorizationOutcome(
  confirmed: ConfirmedChain,
  expected: ExpectedTransfer,
  since: number,
  isVoid: (block: Block) => boolean | Promise<boolean>,
): Promise<TransferOutcome | undefined> {
  const { chain } = confirmed
  return outcomeOfNonce(confirmed, {
    isUsed: (block) => isUsed(chain, expected, block),
    outcomeOfUse: (block) => outcomeOfUse(chain, expected, since, block),
    isVoid,
  })
}

async function outcomeOfUse(
  chain: Chain,
  expected: ExpectedTransfer,
  since: number,
  block: Block,
): Promise<TransferOutcome | undefined> {
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

/** The log of the use or the cancellation of an authorization. */
async function findAuthorization(
  chain: Chain,
  { token, from, nonce }: ExpectedTransfer,
  since: number,
  newest: Block,
): Promise<Log | undefined> {
  const topics = [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], addressTopic(from), nonce]
  const found = await findLog(chain, { address: token, topics }, { since, newest }, async ([first]) => first)
  return found.kind === 'found' ? found.log : undefined
}
