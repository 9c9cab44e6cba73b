import type { JsonObject } from '../../../../engine/index.ts'
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
  readonly dmarc: string | null
  readonly hasCaa: boolean
}

/** What the headers, the certificate and DNS say about care; a score by the table above. */
export function judgeSecurity({ certificate, reply, dmarc, hasCaa }: Seen): JsonObject {
  const header = (name: string): string => reply?.header(name) ?? ''
  const overTls = reply?.url.protocol === 'https:'
  const csp = header('content-security-policy')
  const kept: Readonly<Record<keyof typeof POINTS, boolean>> = {
    valid_certificate: certificate?.valid === true,
    strict_transport_security:
      overTls && Number(/max-age\s*=\s*"?(\d+)/i.exec(header('strict-transport-security'))?.[1] ?? 0) > 0,
    content_security_policy: csp !== '',
    frame_protection:
      /frame-ancestors/i.test(csp) || /^(?:deny|sameorigin)$/i.test(header('x-frame-options').trim()),
    content_type_options: /nosniff/i.test(header('x-content-type-options')),
    referrer_policy: header('referrer-policy') !== '',
    dmarc: dmarc === 'quarantine' || dmarc === 'reject',
    caa: hasCaa,
  }
  const names = Object.keys(POINTS) as (keyof typeof POINTS)[]
  return {
    score: names.reduce((sum, name) => sum + (kept[name] ? POINTS[name] : 0), 0),
    checks: Object.fromEntries(names.map((name) => [name, kept[name]])),
    headers: Object.fromEntries(
      HEADERS.map((name) => [name.replaceAll('-', '_'), header(name).slice(0, 300) || null]),
    ),
  }
}
