import type { Refusal } from '../../base/errors.ts'
import type { Sender } from '../../chains/evm/chain.ts'
import type { SignedAuthorization } from '../../chains/evm/eip3009/authorization.ts'
import type { TokenReader } from '../../chains/evm/eip3009/token-state.ts'
import { transferCall } from '../../chains/evm/eip3009/transfer-call.ts'
import { isRevert } from '../../chains/evm/json-rpc.ts'
import { SENDER_UNFUNDED } from '../../chains/evm/transaction.ts'
import { NODE_UNREACHABLE } from './node-unreachable.ts'
import { explainRevert } from './revert-reason.ts'

/**
 * Whether the token would carry the authorization out now, in a transaction with this gas and these fees: one call, and
 * two more to explain a refusal. `timeout`: milliseconds the node has for it.
 */
export async function simulate(
  { chain, token }: TokenReader,
  signed: SignedAuthorization,
  sender: Sender | undefined,
  timeout: number,
): Promise<Refusal | undefined> {
  const answer = await chain.call(token, transferCall(signed), sender, timeout)
  if (answer.kind === 'result') return undefined
  if (answer.kind === 'refused' && /insufficient funds/i.test(answer.message)) return SENDER_UNFUNDED
  if (!isRevert(answer)) return NODE_UNREACHABLE
  const { from, nonce, value } = signed.authorization
  return {
    code: await explainRevert(chain, { token, from, nonce, value: BigInt(value) }, answer),
    detail: 'the token would not carry out this transfer',
  }
}
