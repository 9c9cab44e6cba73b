import { UptoEvmScheme } from '@x402/evm/upto/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'
import type { JsonObject } from '../../src/engine/base/json.ts'
import { encode, type Challenge, type Hex } from './payment.ts'
import { randomHex } from './random.ts'

/** Written out, and not taken from the code under test. */
export const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3'
export const UPTO_PROXY = '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002'

export const PERMIT_TYPES = {
  PermitWitnessTransferFrom: [
    { name: 'permitted', type: 'TokenPermissions' },
    { name: 'spender', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
    { name: 'witness', type: 'Witness' },
  ],
  TokenPermissions: [
    { name: 'token', type: 'address' },
    { name: 'amount', type: 'uint256' },
  ],
  Witness: [
    { name: 'to', type: 'address' },
    { name: 'facilitator', type: 'address' },
    { name: 'validAfter', type: 'uint256' },
  ],
} as const

const APPROVAL_TYPES = {
  Permit: [
    { name: 'owner', type: 'address' },
    { name: 'spender', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
  ],
} as const

/** `@x402/fetch` and the client of scheme upto as they come from the registry; `rpcUrl`: reads allowances there. */
export function uptoFetch(key: Hex, rpcUrl?: string, transport: typeof fetch = fetch): typeof fetch {
  const options = rpcUrl === undefined ? undefined : { rpcUrl }
  const scheme = new UptoEvmScheme(privateKeyToAccount(key), options)
  return wrapFetchWithPayment(transport, new x402Client().register('eip155:*', scheme)) as typeof fetch
}

/** Possible faults of a permit; omitted parts are valid. */
export interface PermitFaults {
  readonly from?: Hex
  readonly token?: Hex
  readonly amount?: bigint
  readonly spender?: Hex
  readonly nonce?: Hex
  readonly deadline?: bigint
  readonly to?: Hex
  readonly facilitator?: Hex
  readonly validAfter?: bigint
  readonly chainId?: number
  readonly signature?: Hex
  /** Members of the witness that are changed after it was signed. */
  readonly bent?: JsonObject
  /** The nonce of an approval by EIP-2612 that is sent along, of this amount. */
  readonly approval?: { readonly nonce: bigint; readonly value?: bigint; readonly deadline?: bigint }
}

export interface SignedPermit {
  /** Value of PAYMENT-SIGNATURE. */
  readonly header: string
  readonly payload: JsonObject
  readonly nonce: bigint
  readonly from: Hex
}

/** Signs the offer of scheme upto in a challenge, faultlessly but for `faults`. */
export async function signPermit(
  challenge: Challenge,
  key: Hex,
  faults: PermitFaults = {},
): Promise<SignedPermit> {
  const offer = challenge.accepts.find(({ scheme }) => scheme === 'upto')
  if (offer === undefined) throw new Error('the challenge does not offer upto')
  const account = privateKeyToAccount(key)
  const { facilitatorAddress } = offer.extra as unknown as { readonly facilitatorAddress: Hex }
  const from = faults.from ?? account.address
  const chainId = faults.chainId ?? Number(offer.network.split(':')[1])
  const deadline = faults.deadline ?? BigInt(Math.floor(Date.now() / 1000) + offer.maxTimeoutSeconds)
  const message = {
    permitted: { token: faults.token ?? hex(offer.asset), amount: faults.amount ?? BigInt(offer.amount) },
    spender: faults.spender ?? UPTO_PROXY,
    nonce: BigInt(faults.nonce ?? randomHex()),
    deadline,
    witness: {
      to: faults.to ?? hex(offer.payTo),
      facilitator: faults.facilitator ?? facilitatorAddress,
      validAfter: faults.validAfter ?? 0n,
    },
  } as const
  const signature =
    faults.signature ??
    (await account.signTypedData({
      domain: { name: 'Permit2', chainId, verifyingContract: PERMIT2 },
      types: PERMIT_TYPES,
      primaryType: 'PermitWitnessTransferFrom',
      message,
    }))
  const { permitted, spender, nonce, witness } = message
  const permit2Authorization = {
    permitted: { token: permitted.token, amount: String(permitted.amount) },
    from,
    spender,
    nonce: String(nonce),
    deadline: String(deadline),
    witness: {
      to: witness.to,
      facilitator: witness.facilitator,
      validAfter: String(witness.validAfter),
      ...faults.bent,
    },
  }
  const approval =
    faults.approval === undefined
      ? {}
      : await signApproval(key, offer, { deadline, ...faults.approval, chainId, amount: permitted.amount })
  const payload = {
    x402Version: 2,
    resource: challenge.resource,
    accepted: { ...offer },
    payload: { signature, permit2Authorization },
    extensions: { ...challenge.extensions, ...approval },
  }
  return { payload, header: encode(payload), nonce, from }
}

interface ApprovalTerms {
  readonly nonce: bigint
  readonly value?: bigint
  readonly deadline: bigint
  readonly chainId: number
  readonly amount: bigint
}

async function signApproval(
  key: Hex,
  { asset, extra }: Challenge['accepts'][number],
  { nonce, amount, value = amount, deadline, chainId }: ApprovalTerms,
): Promise<JsonObject> {
  const account = privateKeyToAccount(key)
  const signature = await account.signTypedData({
    domain: { name: extra.name, version: extra.version, chainId, verifyingContract: hex(asset) },
    types: APPROVAL_TYPES,
    primaryType: 'Permit',
    message: { owner: account.address, spender: PERMIT2, value, nonce, deadline },
  })
  const info = {
    from: account.address,
    asset,
    spender: PERMIT2,
    amount: String(value),
    nonce: String(nonce),
    deadline: String(deadline),
    signature,
    version: '1',
  }
  return { eip2612GasSponsoring: { info } }
}

function hex(text: string): Hex {
  return `0x${text.slice(2)}`
}
