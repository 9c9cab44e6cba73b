import type { JsonObject } from 'ratecard/handler'
import type { Certificate } from '../../../sources/egress/certificate.ts'
import type { Reply } from '../../../sources/egress/outcome.ts'

/** Points for what a site does for its visitors; together 100. */
const POINTS = {
  valid_certificate: 30,
  strict_transport_security: 15,
  content_security_policy: 15,
  frame_protection: 10,
  content_type_options: 10,
  referrer_policy: 5,
  dmarc: 10,
  caa: 5,
} as const

const HEADERS = [
  'strict-transport-security',
  'content-security-policy',
  'x-frame-options',
  'x-content-type-options',
  'referrer-policy',
  'permissions-policy',
] as const

export interface Seen {
  readonly certificate: Certificate | undefined
  readonly reply: Reply | undefined
  /** Null: DNS could not be asked. */
  readonly dmarc: string | null
  readonly hasCaa: boolean | null
}

/** What the headers, the certificate and DNS say about care, null where it was not read; a score by the table above, null unless all of it was. */
export function judgeSecurity({ certificate, reply, dmarc, hasCaa }: Seen): JsonObject {
  const header = (name: string): string => reply?.header(name) ?? ''
  const overTls = reply?.url.protocol === 'https:'
  const csp = header('content-security-policy')
  const inReply = (test: boolean): boolean | null => (reply === undefined ? null : test)
  const kept: Readonly<Record<keyof typeof POINTS, boolean | null>> = {
    // A site that answers without TLS has no certificate; one that does not answer may have one.
    valid_certificate: certificate?.valid ?? (reply === undefined || overTls ? null : false),
    strict_transport_security: inReply(
      overTls && Number(/max-age\s*=\s*"?(\d+)/i.exec(header('strict-transport-security'))?.[1] ?? 0) > 0,
    ),
    content_security_policy: inReply(csp !== ''),
    frame_protection: inReply(
      /frame-ancestors/i.test(csp) || /^(?:deny|sameorigin)$/i.test(header('x-frame-options').trim()),
    ),
    content_type_options: inReply(/nosniff/i.test(header('x-content-type-options'))),
    referrer_policy: inReply(header('referrer-policy') !== ''),
    dmarc: dmarc === null ? null : dmarc !== 'none',
    caa: hasCaa,
  }
  const names = Object.keys(POINTS) as (keyof typeof POINTS)[]
  return {
    score: names.some((name) => kept[name] === null)
      ? null
      : names.reduce((sum, name) => sum + (kept[name] ? POINTS[name] : 0), 0),
    checks: Object.fromEntries(names.map((name) => [name, kept[name]])),
    headers: Object.fromEntries(
      HEADERS.map((name) => [name.replaceAll('-', '_'), header(name).slice(0, 300) || null]),
    ),
  }
}
