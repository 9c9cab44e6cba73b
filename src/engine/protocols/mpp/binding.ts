import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto'

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
export function standingSlots({
  realm,
  method,
  intent,
  request,
}: Omit<BoundParameters, 'expires' | 'digest' | 'opaque'>): string {
  return `${realm}|${method}|${intent}|${request}|`
}

/** The slots that change. What is absent leaves its slot empty: there are always seven. */
export function movingSlots({
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
