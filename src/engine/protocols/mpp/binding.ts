import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

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
