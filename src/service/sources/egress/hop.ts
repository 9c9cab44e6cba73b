import { Client, errors } from 'undici'
import { ENCODINGS, readBody, type Measure } from './reply-body.ts'
import { AddressRefused, connectorTo, type Wire } from './connection.ts'
import type { Mishap } from './outcome.ts'
import type { Policy } from './target.ts'

/** One request and its answer, redirects not followed. */
export type Hop =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly header: (name: string) => string | undefined
      readonly body: Uint8Array
      readonly cut: boolean
    }
  | { readonly kind: 'moved'; readonly status: number; readonly to: string }
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly mishap: Mishap }

export interface HopOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly measure: Measure
  readonly policy: Policy
  readonly wire: Wire
}

const HEADERS_MS = 8000
const HEADER_BYTES = 32 * 1024
const MOVED: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Requests one address over a new connection, which nobody else can reuse. */
export async function hop(
  url: URL,
  { headers, measure, policy, wire }: HopOptions,
  signal: AbortSignal,
): Promise<Hop> {
  const client = new Client(url.origin, {
    connect: connectorTo(url, policy, wire),
    pipelining: 0,
    headersTimeout: HEADERS_MS,
    bodyTimeout: HEADERS_MS,
    maxHeaderSize: HEADER_BYTES,
  })
  try {
    const answer = await client.request({
      method: 'GET',
      path: url.pathname + url.search,
      headers: { ...headers, 'accept-encoding': ENCODINGS },
      signal,
    })
    const { statusCode: status, body } = answer
    // An error of an unread body would end the process when its connection closes.
    body.on('error', () => undefined)
    const header = (name: string): string | undefined =>
      [answer.headers[name] ?? []].flat().join(', ') || undefined
    const to = header('location')
    if (MOVED.has(status) && to !== undefined) return { kind: 'moved', status, to }
    const read = await readBody(body, header('content-encoding') ?? '', measure)
    if (read.kind === 'failed') return { kind: 'failed', mishap: read.reason }
    return { kind: 'answered', status, header, body: read.bytes, cut: read.cut }
  } catch (cause) {
    if (cause instanceof AddressRefused) return { kind: 'refused' }
    return { kind: 'failed', mishap: mishapOf(cause) }
  } finally {
    void client.destroy().catch(() => undefined)
  }
}

function mishapOf(cause: unknown): Mishap {
  if (cause instanceof errors.HeadersTimeoutError || cause instanceof errors.BodyTimeoutError)
    return 'timeout'
  if (cause instanceof errors.ConnectTimeoutError) return 'unreachable'
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
  if (/^ECONNREFUSED|^EHOST|^ENET|^EADDR|^ETIMEDOUT/.test(code) || cause instanceof AggregateError)
    return 'unreachable'
  if (/^ERR_TLS|CERT|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|^ERR_SSL|^EPROTO/.test(code))
    return 'certificate'
  if (/^(ESERVFAIL|ETIMEOUT|EREFUSED|EBADRESP|ECANCELLED|EFORMERR)$/.test(code)) return 'unresolved'
  return 'broken'
}
