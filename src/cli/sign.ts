import { privateKeyToAccount } from 'viem/accounts'
import type { SignableOffer } from './offer.ts'

const TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

export interface SignedPayment {
  readonly payer: string
  /** Value of PAYMENT-SIGNATURE. */
  readonly header: string
}

/** Signs the transfer an offer asks for (EIP-3009 under EIP-712) and packs it as an x402 v2 PaymentPayload. */
export async function signOffer(
  offer: SignableOffer,
  key: `0x${string}`,
  now: Date,
  random: (bytes: number) => Uint8Array,
): Promise<SignedPayment> {
  const account = privateKeyToAccount(key)
  const { network, amount, payTo, timeoutSeconds, accepted, resource, extensions } = offer
  const { token, chainId } = network
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
    types: TYPES,
    primaryType: 'TransferWithAuthorization',
    message,
  })
  const authorization = {
    ...message,
    value: String(message.value),
    validAfter: String(message.validAfter),
    validBefore: String(message.validBefore),
  }
  const payload = {
    x402Version: 2,
    ...(resource === undefined ? {} : { resource }),
    accepted,
    payload: { signature, authorization },
    ...(extensions === undefined ? {} : { extensions }),
  }
  return { payer: account.address, header: Buffer.from(JSON.stringify(payload)).toString('base64') }
}
