import type { ErrorCode } from '../../base/errors.ts'
import { decodeText, selector } from '../../chains/evm/abi.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import { balanceOf, isUsed, type ExpectedTransfer } from '../../chains/evm/eip3009/token-state.ts'
import type { Refused } from '../../chains/evm/json-rpc.ts'

const ERROR = selector('Error(string)')

/** The token’s own words (FiatTokenV2_2), as codes. */
const REASONS: readonly [RegExp, ErrorCode][] = [
  [/authorization is used or canceled/i, 'invalid_exact_evm_nonce_already_used'],
  [/exceeds balance/i, 'invalid_exact_evm_insufficient_balance'],
  [/invalid signature/i, 'invalid_exact_evm_signature'],
  [/authorization is expired/i, 'invalid_exact_evm_payload_authorization_valid_before'],
  [/authorization is not yet valid/i, 'invalid_exact_evm_payload_authorization_valid_after'],
]

/** Why the token has reverted: from what it says, otherwise by two questions. */
export async function explainRevert(
  chain: Chain,
  expected: Omit<ExpectedTransfer, 'to'>,
  { data, message }: Refused,
): Promise<ErrorCode> {
  return reasonCode(`${revertReason(data) ?? ''} ${message}`) ?? diagnose(chain, expected)
}

function reasonCode(text: string): ErrorCode | undefined {
  return REASONS.find(([pattern]) => pattern.test(text))?.[1]
}

/** The sentence a contract has reverted with, from the node’s revert data. */
function revertReason(data: string | undefined): string | undefined {
  return data?.slice(2, 10).toLowerCase() === ERROR ? decodeText(data.slice(10)) : undefined
}

async function diagnose(chain: Chain, expected: Omit<ExpectedTransfer, 'to'>): Promise<ErrorCode> {
  const [balance, used] = await Promise.all([
    balanceOf({ chain, token: expected.token }, expected.from),
    isUsed(chain, expected),
  ])
  if (used === true) return 'invalid_exact_evm_nonce_already_used'
  if (balance !== undefined && balance < expected.value) return 'invalid_exact_evm_insufficient_balance'
  return 'invalid_exact_evm_transaction_simulation_failed'
}
