import { MPP_CHALLENGE_MS } from '../base/money-times.ts'
import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { Endpoint } from '../catalog/catalog.ts'
import { canonicalJson, slim, type Json, type JsonObject } from '../base/json.ts'
import type { Micros } from '../base/money.ts'
import { TOKEN_LENGTH } from '../payment/random-token.ts'
import type { Challenge, IssuedChallenge } from '../payment/challenge.ts'

export const METHOD = 'tempo'
export const INTENT = 'charge'

/** What is the same in every challenge of this service. Letter case is part of the binding: each has one spelling. */
export interface Terms {
  readonly realm: string
  readonly chainId: number
  /** TIP-20 token contract. */
  readonly currency: string
  readonly recipient: string
  /** Whether challenges say that the money is worthless. */
  readonly testnet: boolean
}

/**
 * The protection space: the host without its port, as mppx derives it from a request and as its validator asks for.
 * It is hashed into the memo of the transfer, so another realm makes every credential that is under way worthless.
 */
export function realmOf(baseUrl: string): string {
  return new URL(baseUrl).hostname
}

/** `request` of a price: the client signs a transaction, and we broadcast it (pull mode). */
export function requestOf(terms: Terms, price: Micros): string {
  return encode(plainRequest(terms, price))
}

/** A price in atomic units: every TIP-20 token has six decimals, as prices have. */
export function requestAmount(price: Micros): string {
  return price.toString()
}

function plainRequest({ chainId, currency, recipient, testnet }: Terms, price: Micros): JsonObject {
  return {
    amount: requestAmount(price),
    currency,
    recipient,
    methodDetails: { chainId, supportedModes: ['pull'], ...(testnet ? { testnet } : {}) },
  }
}

/**
 * Makes `opaque` of a purchase, under the name that mppx uses for the same purpose: a payment is good for this purchase
 * alone. The nonce is for buyers who ask for the same thing in the same moment: an id is good for one payment, so each
 * gets another.
 */
export function opaqueOf(scope: string, nonce: string): string {
  return Buffer.from(`{"_mppx_scope":${JSON.stringify(scope)},"nonce":"${nonce}"}`).toString('base64url')
}

export function encode(value: Json): string {
  return Buffer.from(canonicalJson(value), 'utf8').toString('base64url')
}

/** The members that differ in every challenge. */
type Moving = Readonly<Record<'id' | 'expires' | 'opaque', string>> & { readonly digest?: string }

interface ChallengeSettings {
  readonly terms: Terms
  /** The current one. */
  readonly secretKey: string
  readonly now: () => number
  /** Another one at each call. */
  readonly nextNonce: () => string
}

/**
 * The 402 of one route (Payment authentication scheme, “The Payment Challenge”): everything but id, expiry and
 * `opaque` is serialised once.
 */
export function createChallenge(
  endpoint: Endpoint,
  price: Micros,
  { terms, secretKey, now, nextNonce }: ChallengeSettings,
): Challenge {
  const request = requestOf(terms, price)
  const description = descriptionOf(endpoint)
  const { realm, currency } = terms
  const named = { realm, method: METHOD, intent: INTENT }
  const bind = prepareHmac(secretKey, `${realm}|${METHOD}|${INTENT}|${request}|`)
  const expiry = expiryAfter(now)
  const standing = slim(
    `", realm="${realm}", method="${METHOD}", intent="${INTENT}", request="${request}"${description === '' ? '' : `, description="${description}"`}, expires="`,
  )
  const make = (opaque: string, digest?: string): Moving => {
    const expires = expiry()
    return digest === undefined
      ? { id: bind(`${expires}||${opaque}`), expires, opaque }
      : { id: bind(`${expires}|${digest}|${opaque}`), expires, opaque, digest }
  }
  const write = (nonce: string, scope: string, digest?: string): IssuedChallenge => {
    const bound = digest === undefined ? '", opaque="' : `", digest="${digest}", opaque="`
    const { id, expires, opaque } = make(opaqueOf(scope, nonce), digest)
    return {
      headers: { 'WWW-Authenticate': `Payment id="${id}${standing}${expires}${bound}${opaque}"` },
      members: `"challengeId":"${id}"`,
    }
  }
  const anyScope = `${endpoint.operation.id}:${'x'.repeat(DIGEST_LENGTH)}`
  const longest = write('x'.repeat(TOKEN_LENGTH), anyScope).headers['WWW-Authenticate']
  return {
    issue: ({ scope, contentDigest }) => write(nextNonce(), scope, contentDigest),
    demand: ({ scope }) => {
      const moving = make(opaqueOf(scope, nextNonce()))
      const challenge = { ...moving, ...named, request: plainRequest(terms, price) }
      // Transport MCP: the challenge is in the result, because an error could not carry that of x402 as well.
      return {
        content: {},
        meta: { 'org.paymentauth/payment-required': { httpStatus: 402, challenges: [challenge] } },
      }
    },
    published: {
      intent: INTENT,
      method: METHOD,
      amount: requestAmount(price),
      currency,
    },
    headerBytes: longest?.length ?? 0,
  }
}

/** Characters of a SHA-256 in base64url. */
const DIGEST_LENGTH = 43
const LONGEST_DESCRIPTION = 200

/** For display only, and not bound: without characters that known parsers fail on. */
function descriptionOf({ summary }: Endpoint): string {
  return summary
    .normalize('NFKD')
    .replaceAll(/[^ !#-[\]-~]/g, '')
    .slice(0, LONGEST_DESCRIPTION)
}

/** What a challenge’s id is bound to, each as it is on the wire. */
export interface BoundParameters {
  readonly realm: string
  readonly method: string
  readonly intent: string
  readonly request: string
  readonly expires?: string
  readonly digest?: string
  readonly opaque?: string
}

/**
 * Payment authentication scheme, “Challenge Binding”: the id is an HMAC over seven slots, and an absent one is empty.
 * Nothing of a challenge is stored.
 */
function bindId(
  secretKey: string,
  { realm, method, intent, request, expires = '', digest = '', opaque = '' }: BoundParameters,
): string {
  const slots = `${realm}|${method}|${intent}|${request}|${expires}|${digest}|${opaque}`
  return createHmac('sha256', secretKey).update(slots).digest('base64url')
}

const BLOCK = 64

/**
 * HMAC-SHA256 of ASCII texts with a common prefix, in base64url. RFC 2104 as two hash calls, without the objects of
 * `createHmac`, which cost more than the hash.
 */
function prepareHmac(secretKey: string, beginning: string): (rest: string) => string {
  const secret = Buffer.from(secretKey, 'utf8')
  const key = Buffer.alloc(BLOCK)
  key.set(secret.length > BLOCK ? createHash('sha256').update(secret).digest() : secret)
  const inner = Buffer.concat([key.map((byte) => byte ^ 0x36), Buffer.from(beginning, 'latin1')])
  const outer = Buffer.concat([key.map((byte) => byte ^ 0x5c), Buffer.alloc(32)])
  return (rest) => {
    const message = Buffer.allocUnsafe(inner.length + rest.length)
    message.set(inner)
    message.write(rest, inner.length, 'latin1')
    outer.write(hash('sha256', message, 'hex'), BLOCK, 'hex')
    return hash('sha256', outer, 'base64url')
  }
}

/** When a challenge that is made now expires. Many are made within a millisecond: it is written out once. */
function expiryAfter(now: () => number): () => string {
  let [end, expires] = [0, '']
  return () => {
    const next = now() + MPP_CHALLENGE_MS
    if (next !== end) [end, expires] = [next, new Date(next).toISOString()]
    return expires
  }
}

/** Whether one of the secrets has made this id for exactly these parameters. */
export function isIssued(
  challenge: BoundParameters & { readonly id: string },
  secretKeys: readonly string[],
): boolean {
  return secretKeys.some((secretKey) => isSame(bindId(secretKey, challenge), challenge.id))
}

/** Compares in constant time, whatever the lengths. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
