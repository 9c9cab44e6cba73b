import type { Refusal } from '../../base/errors.ts'
import { selector } from '../../chains/evm/abi.ts'
import { allowanceOf, balanceOf } from '../../chains/evm/eip3009/token-state.ts'
import type { Refused } from '../../chains/evm/json-rpc.ts'
import { PERMIT2 } from '../../base/permit2.ts'
import { nonceWord, type SignedPermit } from '../../chains/evm/permit2/permit.ts'
import { isNonceUsed } from '../../chains/evm/permit2/permit-outcome.ts'
import type { Chain } from '../../chains/evm/chain.ts'

/** Code of a permit that was used or canceled. */
export const USED = 'permit2_invalid_nonce'

/** The errors of Permit2 and the proxy, as codes. */
const ERRORS_OF_CONTRACTS: ReadonlyMap<string, Refusal> = new Map<string, Refusal>(
  (
    [
      ['InvalidNonce()', USED, 'the nonce of the permit was used or canceled'],
      ['SignatureExpired(uint256)', 'permit2_deadline_expired', 'the deadline of the permit is over'],
      ['PaymentTooEarly()', 'permit2_not_yet_valid', 'witness.validAfter is in the future of the chain'],
      ['InvalidSigner()', 'invalid_permit2_signature', 'Permit2 does not accept the signature'],
      ['InvalidSignature()', 'invalid_permit2_signature', 'Permit2 does not accept the signature'],
      ['InvalidSignatureLength()', 'invalid_permit2_signature', 'Permit2 does not accept the signature'],
      [
        'InvalidContractSignature()',
        'invalid_permit2_signature',
        'the paying contract refuses the signature',
      ],
    ] as const
  ).map(([error, code, detail]) => [selector(error), { code, detail }]),
)

/** Why the proxy would not move this amount: from the error of a contract, otherwise by three questions. */
export async function explainPermitRevert(
  chain: Chain,
  { permit, approval }: SignedPermit,
  amount: bigint,
  { data }: Refused,
): Promise<Refusal> {
  const known = ERRORS_OF_CONTRACTS.get(data?.slice(2, 10).toLowerCase() ?? '')
  if (known !== undefined) return known
  const reader = { chain, token: permit.token }
  const [used, balance, allowance] = await Promise.all([
    isNonceUsed(chain, { from: permit.from, nonce: nonceWord(permit) }),
    balanceOf(reader, permit.from),
    allowanceOf(reader, permit.from, PERMIT2),
  ])
  if (used === true) return { code: USED, detail: 'the nonce of the permit was used or canceled' }
  if (balance !== undefined && balance < amount)
    return { code: 'permit2_insufficient_balance', detail: `the payer holds ${balance}, less than ${amount}` }
  if (allowance !== undefined && allowance < amount)
    return {
      code: 'permit2_allowance_required',
      detail:
        approval === undefined
          ? `the payer allows Permit2 to move ${allowance}, less than ${amount}`
          : 'the token does not accept the signed approval of Permit2',
    }
  return { code: 'permit2_simulation_failed', detail: 'the token would not carry out this transfer' }
}
