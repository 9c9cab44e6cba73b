import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'
import { isJsonObject, type Json, type JsonObject } from '../../src/engine/base/json.ts'
import { randomHex } from './random.ts'

export type Hex = `0x${string}`

export { randomHex as randomKey }

export function addressOf(key: Hex): Hex {
  return privateKeyToAccount(key).address
}

/** `@x402/fetch` as it comes from the registry, with nothing set but the wallet; `transport` carries its requests. */
export function stockFetch(key: Hex, transport: typeof fetch = fetch): typeof fetch {
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(key)))
  return wrapFetchWithPayment(transport, client) as typeof fetch
}

/** The decoded PAYMENT-REQUIRED header. */
export interface Challenge {
  readonly x402Version: number
  readonly error: string
  readonly resource: JsonObject & { readonly url: string }
  readonly accepts: readonly Requirements[]
  readonly extensions: JsonObject
}

interface Requirements extends JsonObject {
  readonly scheme: string
  readonly network: string
  readonly amount: string
  readonly asset: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly extra: { readonly name: string; readonly version: string }
}

/** What a GET without a payment is asked for. */
export async function challengeOf(url: string, transport: typeof fetch = fetch): Promise<Challenge> {
  const response = await transport(url)
  await response.body?.cancel()
  return readHeader(response, 'payment-required') as unknown as Challenge
}

/** The challenge in the headers of an answer that was not sent. */
export function challengeIn(
  answer: { readonly headers: Readonly<Record<string, string>> } | undefined,
): Challenge {
  const text = Buffer.from(answer?.headers['PAYMENT-REQUIRED'] ?? '', 'base64').toString('utf8')
  return JSON.parse(text) as Challenge
}

/** A base64 JSON header of an answer; throws when it is absent. */
export function readHeader(response: Response, name: string): JsonObject {
  const text = response.headers.get(name)
  if (text === null) throw new Error(`${response.status} has no ${name}`)
  const value: unknown = JSON.parse(Buffer.from(text, 'base64').toString('utf8'))
  if (!isJsonObject(value)) throw new Error(`${name} is no object`)
  return value
}

/** Possible faults of a payment; omitted parts are valid. */
export interface Faults {
  readonly from?: Hex
  readonly to?: Hex
  readonly value?: bigint
  readonly validAfter?: bigint
  readonly validBefore?: bigint
  readonly nonce?: Hex
  /** What the signature is made over, where that differs from the offer. */
  readonly domain?: { readonly name?: string; readonly chainId?: number; readonly verifyingContract?: Hex }
  readonly signature?: Hex
  readonly accepted?: JsonObject
  /** null leaves it out. */
  readonly resource?: JsonObject | null
  /** null leaves them out. */
  readonly extensions?: JsonObject | null
}

export interface SignedPayment {
  readonly payload: JsonObject
  /** Value of PAYMENT-SIGNATURE. */
  readonly header: string
  readonly authorization: {
    readonly from: Hex
    readonly to: Hex
    readonly value: bigint
    readonly validAfter: bigint
    readonly validBefore: bigint
    readonly nonce: Hex
  }
  readonly signature: Hex
}

/** Written out, and not taken from the code under test. */
export const TRANSFER_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/** Signs the first offer of a challenge, faultlessly but for `faults`. */
export async function sign(challenge: Challenge, key: Hex, faults: Faults = {}): Promise<SignedPayment> {
  const [offer] = challenge.accepts
  if (offer === undefined) throw new Error('the challenge offers nothing')
  const account = privateKeyToAccount(key)
  const authorization = {
    from: faults.from ?? account.address,
    to: faults.to ?? hex(offer.payTo),
    value: faults.value ?? BigInt(offer.amount),
    validAfter: faults.validAfter ?? 0n,
    validBefore: faults.validBefore ?? BigInt(Math.floor(Date.now() / 1000) + offer.maxTimeoutSeconds),
    nonce: faults.nonce ?? randomHex(),
  } as const
  const domain = {
    name: offer.extra.name,
    version: offer.extra.version,
    chainId: Number(offer.network.split(':')[1]),
    verifyingContract: hex(offer.asset),
    ...faults.domain,
  }
  const signature =
    faults.signature ??
    (await account.signTypedData({
      domain,
      types: TRANSFER_TYPES,
      primaryType: 'TransferWithAuthorization',
      message: authorization,
    }))
  const payload = {
    x402Version: 2,
    ...optional('resource', faults.resource, challenge.resource),
    accepted: { ...offer, ...faults.accepted },
    payload: { signature, authorization: inTexts(authorization) },
    ...optional('extensions', faults.extensions, challenge.extensions),
  }
  return { payload, header: encode(payload), authorization, signature }
}

/** The same authorization in the envelope of x402 version 1, as its clients write it. */
export function writtenInV1({ authorization, signature }: SignedPayment, network: string) {
  return {
    x402Version: 1,
    scheme: 'exact',
    network,
    payload: { signature, authorization: inTexts(authorization) },
  }
}

/** An authorization as payloads carry it: whole numbers as texts. */
export function inTexts({ from, to, value, validAfter, validBefore, nonce }: SignedPayment['authorization']) {
  return {
    from,
    to,
    value: String(value),
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce,
  }
}

function optional(name: string, fault: JsonObject | null | undefined, usual: JsonObject): JsonObject {
  return fault === null ? {} : { [name]: fault ?? usual }
}

function hex(text: string): Hex {
  return `0x${text.slice(2)}`
}

export function encode(value: Json): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64')
}

/** GET with a payment. */
export function send(url: string, header: string, transport: typeof fetch = fetch): Promise<Response> {
  return transport(url, { headers: { 'payment-signature': header } })
}

/** Nonce of the authorization in a PAYMENT-SIGNATURE. */
export function nonceOf(header: string): string {
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as {
    payload: { authorization: { nonce: string } }
  }
  return payload.authorization.nonce
}
