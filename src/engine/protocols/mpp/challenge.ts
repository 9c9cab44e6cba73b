import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { Endpoint } from '../../catalog/catalog.ts'
import { canonicalJson, compact, slim, type Json, type JsonObject } from '../../json.ts'
import { toAtomic, type Micros } from '../../money.ts'
import { TOKEN_LENGTH, type Challenge, type IssuedChallenge } from '../protocol.ts'

export const METHOD = 'tempo'
export const INTENT = 'charge'

/** What is the same in every challenge of this service. Letter case is part of the binding: each has one spelling. */
export interface Terms {
  readonly realm: string
  readonly chainId: number
  /** TIP-20 token contract. */
  readonly currency: string
  readonly recipient: string
}

/** Of every TIP-20 token. */
export const DECIMALS = 6

/** How long a challenge can be paid: the scheme’s clients and mppx use the same. */
const LIFETIME_MS = 300_000

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

function plainRequest({ chainId, currency, recipient }: Terms, price: Micros): JsonObject {
  const amount = toAtomic(price, DECIMALS).toString()
  return { amount, currency, recipient, methodDetails: { chainId, supportedModes: ['pull'] } }
}

/**
 * `opaque` of a purchase, under the name mppx uses for the same end: a payment is good for this and nothing else. The
 * nonce is for buyers who ask for the same thing in the same moment: an id is good for one payment, so each gets another.
 */
export function opaqueOf(scope: string, nonce: string): string {
  return toBase64url(`{"_mppx_scope":${JSON.stringify(scope)},"nonce":${JSON.stringify(nonce)}}`)
}

export function encode(value: Json): string {
  return toBase64url(canonicalJson(value))
}

function toBase64url(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url')
}

/** What is another in every challenge. */
type Moving = Readonly<Record<'id' | 'expires' | 'opaque', string>>

export interface ChallengeSettings {
  readonly terms: Terms
  /** The current one. */
  readonly secretKey: string
  readonly now: () => number
  /** Another one at each call. */
  readonly nextNonce: () => string
}

/**
 * What a 402 of one route says (Payment authentication scheme, “The Payment Challenge”): everything but id, expiry,
 * scope and nonce is serialised once.
 */
export function createChallenge(
  endpoint: Endpoint,
  price: Micros,
  { terms, secretKey, now, nextNonce }: ChallengeSettings,
): Challenge {
  const request = requestOf(terms, price)
  const description = descriptionOf(endpoint)
  const { realm, currency } = terms
  const bind = createBinder(secretKey, standingSlots({ realm, method: METHOD, intent: INTENT, request }))
  const standing = slim(
    `", realm="${realm}", method="${METHOD}", intent="${INTENT}", request="${request}"${description === '' ? '' : `, description="${description}"`}, expires="`,
  )
  const make = (scope: string, nonce: string): Moving => {
    const expires = new Date(now() + LIFETIME_MS).toISOString()
    const opaque = opaqueOf(scope, nonce)
    return { id: bind(movingSlots({ expires, opaque })), expires, opaque }
  }
  const write = (scope: string, nonce: string): IssuedChallenge => {
    const { id, expires, opaque } = make(scope, nonce)
    return {
      headers: { 'WWW-Authenticate': `Payment id="${id}${standing}${expires}", opaque="${opaque}"` },
      members: `"challengeId":"${id}"`,
    }
  }
  const scope = `${endpoint.operation.id}:${'x'.repeat(DIGEST_LENGTH)}`
  const longest = write(scope, 'x'.repeat(TOKEN_LENGTH)).headers['WWW-Authenticate']
  return {
    issue: ({ scope }) => write(scope, nextNonce()),
    demand: ({ scope }) => {
      const plain = { realm, method: METHOD, intent: INTENT, request: plainRequest(terms, price) }
      const told = description === '' ? undefined : description
      const challenge = compact({ ...make(scope, nextNonce()), ...plain, description: told })
      // Transport MCP: the challenge stands in the result, for an error could not carry x402’s as well.
      return {
        content: {},
        meta: { 'org.paymentauth/payment-required': { httpStatus: 402, challenges: [challenge] } },
      }
    },
    published: {
      intent: INTENT,
      method: METHOD,
      amount: toAtomic(price, DECIMALS).toString(),
      currency,
    },
    headerBytes: longest?.length ?? 0,
  }
}

/** Characters of a SHA-256 in base64url. */
const DIGEST_LENGTH = 43
const LONGEST_DESCRIPTION = 200

/** Display only, and not bound: what parsers in the field stumble over is left out. */
function descriptionOf({ summary }: Endpoint): string {
  return summary
    .normalize('NFKD')
    .replaceAll(/[^ !#-[\]-~]/g, '')
    .slice(0, LONGEST_DESCRIPTION)
}

/** What a challenge’s id is bound to, each as it stands on the wire. */
export interface BoundParameters {
  readonly realm: string
  readonly method: string
  readonly intent: string
  readonly request: string
  readonly expires?: string
  readonly digest?: string
  readonly opaque?: string
}

/** The slots that stay the same over all challenges of a route. */
function standingSlots({
  realm,
  method,
  intent,
  request,
}: Omit<BoundParameters, 'expires' | 'digest' | 'opaque'>): string {
  return `${realm}|${method}|${intent}|${request}|`
}

/** The slots that change. What is absent leaves its slot empty: there are always seven. */
function movingSlots({
  expires = '',
  digest = '',
  opaque = '',
}: Pick<BoundParameters, 'expires' | 'digest' | 'opaque'>): string {
  return `${expires}|${digest}|${opaque}`
}

/** Payment authentication scheme, “Challenge Binding”: the id is an HMAC, so that nothing is kept of a challenge. */
export function bindId(secretKey: string, slots: string): string {
  return createHmac('sha256', secretKey).update(slots).digest('base64url')
}

const BLOCK = 64
const DIGEST = 32

/**
 * `bindId` for many challenges with the same standing slots. RFC 2104 taken apart: what stands before the moving slots
 * is laid out once, and an id costs two calls of the hash and none of the objects `createHmac` makes.
 */
export function createBinder(secretKey: string, standing: string): (moving: string) => string {
  const key = Buffer.alloc(BLOCK)
  const secret = Buffer.from(secretKey, 'utf8')
  key.set(secret.length > BLOCK ? createHash('sha256').update(secret).digest() : secret)
  const inner = Buffer.concat([key.map((byte) => byte ^ 0x36), Buffer.from(standing, 'utf8')])
  const outer = Buffer.concat([key.map((byte) => byte ^ 0x5c), Buffer.alloc(DIGEST)])
  return (moving) => {
    const message = Buffer.allocUnsafe(inner.length + Buffer.byteLength(moving))
    message.set(inner)
    message.write(moving, inner.length)
    outer.write(hash('sha256', message, 'hex'), BLOCK, 'hex')
    return hash('sha256', outer, 'base64url')
  }
}

/** Whether one of the secrets has made this id for exactly these parameters. */
export function isIssued(
  challenge: BoundParameters & { readonly id: string },
  secretKeys: readonly string[],
): boolean {
  const slots = standingSlots(challenge) + movingSlots(challenge)
  return secretKeys.some((secretKey) => isSame(bindId(secretKey, slots), challenge.id))
}

/** In constant time, whatever their lengths. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
