import { privateKeyToAccount } from '../../vendor/viem-accounts.ts'
import { TRANSFER_TYPES } from '../../engine/base/transfer-types.ts'
import type { EvmSigner } from './paying-protocol.ts'
import type { EvmTerms, SignedTerms } from './x402-terms.ts'

/** Scheme `exact`: a transfer of the price (EIP-3009 under EIP-712). */
export async function signTransfer(
  { network: { token, chainId }, amount, payTo, timeoutSeconds }: EvmTerms,
  { key, now, random }: EvmSigner,
): Promise<SignedTerms> {
  const account = privateKeyToAccount(key)
  const message = {
    from: account.address,
    to: payTo,
    value: amount,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(now.getTime() / 1000) + timeoutSeconds),
    nonce: `0x${Buffer.from(random(32)).toString('hex')}`,
  } as const
  const signature = await account.signTypedData({
    domain: { name: token.name, version: token.version, chainId, verifyingContract: token.address },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message,
  })
  const authorization = {
    ...message,
    value: String(message.value),
    validAfter: String(message.validAfter),
    validBefore: String(message.validBefore),
  }
  return { kind: 'signed', payer: account.address, payload: { signature, authorization } }
}
