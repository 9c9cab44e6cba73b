import { type PrivateKeyAccount, privateKeyToAccount } from '../../vendor/viem-accounts.ts'
import type { Address } from '../../engine/base/address.ts'
import type { JsonObject } from '../../engine/base/json.ts'
import type { Network } from '../../engine/base/networks.ts'
import { GAS_SPONSORING, PERMIT2, UPTO_PROXY } from '../../engine/base/permit2.ts'
import { APPROVAL_TYPES, PERMIT_TYPES } from '../../engine/base/permit-types.ts'
import type { EvmSigner } from './paying-protocol.ts'
import { readPermit2Allowance } from './permit2-allowance.ts'
import type { EvmTerms, SignedTerms } from './x402-terms.ts'

/** What only scheme `upto` has in its terms. */
export interface PermitTerms {
  readonly facilitator: Address
  readonly sponsoring: 'offered' | 'none'
}

/**
 * Scheme `upto`: a transfer of at most the amount, by Permit2. Where Permit2 may not move that much, an approval of
 * exactly the amount is signed with it, if the seller carries it out.
 */
export async function signPermit(
  terms: EvmTerms,
  { facilitator, sponsoring }: PermitTerms,
  { key, rpcUrl, now, random }: EvmSigner,
): Promise<SignedTerms> {
  const account = privateKeyToAccount(key)
  const { network, amount, payTo, timeoutSeconds } = terms
  const { chainId, token, title } = network
  const url = rpcUrl(chainId) ?? network.rpcUrl
  const held = await readPermit2Allowance({ url, token: token.address, owner: account.address })
  if (held === undefined)
    return {
      kind: 'unsigned',
      reason: `a node of ${title} must say what Permit2 may move, and none answers: set RPC_URL_${chainId}`,
    }
  const isApproved = held.allowance >= amount
  if (!isApproved && sponsoring === 'none')
    return {
      kind: 'unsigned',
      reason: `Permit2 may not move ${token.symbol} of ${account.address} on ${title}: approve ${PERMIT2} once`,
    }
  const deadline = BigInt(Math.floor(now.getTime() / 1000) + timeoutSeconds)
  const witness = { to: payTo, facilitator, validAfter: 0n }
  const nonce = BigInt(`0x${Buffer.from(random(32)).toString('hex')}`)
  const signature = await account.signTypedData({
    domain: { name: 'Permit2', chainId, verifyingContract: PERMIT2 },
    types: PERMIT_TYPES,
    primaryType: 'PermitWitnessTransferFrom',
    message: { permitted: { token: token.address, amount }, spender: UPTO_PROXY, nonce, deadline, witness },
  })
  const permit2Authorization = {
    permitted: { token: token.address, amount: String(amount) },
    from: account.address,
    spender: UPTO_PROXY,
    nonce: String(nonce),
    deadline: String(deadline),
    witness: { ...witness, validAfter: String(witness.validAfter) },
  }
  const payload = { signature, permit2Authorization }
  if (isApproved) return { kind: 'signed', payer: account.address, payload }
  const approval = await signApproval(account, network, { amount, nonce: held.nonce, deadline })
  return { kind: 'signed', payer: account.address, payload, extensions: { [GAS_SPONSORING]: approval } }
}

interface ApprovalTerms {
  readonly amount: bigint
  /** Of the payer at the token. */
  readonly nonce: bigint
  readonly deadline: bigint
}

/** An approval of Permit2 that the seller sends along (x402, eip2612_gas_sponsoring.md). */
async function signApproval(
  account: PrivateKeyAccount,
  { chainId, token }: Network,
  { amount, nonce, deadline }: ApprovalTerms,
): Promise<JsonObject> {
  const signature = await account.signTypedData({
    domain: { name: token.name, version: token.version, chainId, verifyingContract: token.address },
    types: APPROVAL_TYPES,
    primaryType: 'Permit',
    message: { owner: account.address, spender: PERMIT2, value: amount, nonce, deadline },
  })
  const info = {
    from: account.address,
    asset: token.address,
    spender: PERMIT2,
    amount: String(amount),
    nonce: String(nonce),
    deadline: String(deadline),
    signature,
    version: '1',
  }
  return { info }
}
