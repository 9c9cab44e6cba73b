import { Failure } from './errors.ts'

/**
 * Why an upstream or source has failed, for its operator:
 *
 * - `refused`: nothing listens there, the connection was closed, or the Fetch Standard blocks its port
 * - `name`: its host name is unknown
 * - `tls`: its certificate or its TLS is not accepted
 * - `timeout`: it did not answer in time
 * - `status`: it answered with an error status
 * - `type`: it answered in another media type
 * - `body`: its answer was broken off, too large, empty or malformed
 */
export type UpstreamCause = 'refused' | 'name' | 'tls' | 'timeout' | 'status' | 'type' | 'body'

/** The cause of a `Failure` of an upstream that did answer. */
export class UpstreamFault extends Error {
  readonly kind: UpstreamCause

  constructor(kind: UpstreamCause, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'UpstreamFault'
    this.kind = kind
  }
}

/** Codes of Node.js, OpenSSL and undici. */
const CAUSES: readonly (readonly [RegExp, UpstreamCause])[] = [
  [/^(?:ENOTFOUND|EAI_\w+|EDNS\w*)$/, 'name'],
  [/TIMEDOUT|TIMEOUT/, 'timeout'],
  [/CERT|TLS|SSL|^EPROTO$|SELF_SIGNED|UNABLE_TO_VERIFY|HOSTNAME_MISMATCH/, 'tls'],
  [
    /^(?:ECONN\w+|EHOSTUNREACH|ENETUNREACH|EPIPE|EADDRNOTAVAIL|UND_ERR_SOCKET|UND_ERR_CONNECT\w*)$/,
    'refused',
  ],
  [/^(?:HPE_\w+|UND_ERR_(?:RES|RESPONSE|BODY|HEADERS_OVERFLOW)\w*|Z_\w+|ERR_INVALID_HTTP\w*)$/, 'body'],
]

/** Errors that may come without a code. */
const NAMED: Readonly<Record<string, UpstreamCause>> = { TimeoutError: 'timeout', HTTPParserError: 'body' }

/** The cause of a failure, from what the network said; undefined when it has no such cause. */
export function upstreamCauseOf(failure: Failure): UpstreamCause | undefined {
  for (let cause: unknown = failure.cause; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof UpstreamFault) return cause.kind
    const named = NAMED[cause.name]
    if (named !== undefined) return named
    const code = codeOf(cause)
    const [, found] = CAUSES.find(([pattern]) => pattern.test(code)) ?? []
    if (found !== undefined) return found
    // Several addresses of one host were tried.
    if (cause instanceof AggregateError && cause.errors[0] instanceof Error)
      return upstreamCauseOf(new Failure(failure.code, '', { cause: cause.errors[0] }))
    if (cause.message === 'bad port') return 'refused'
    // The Fetch Standard makes a network error of 407, in some versions of Node.js without words.
    if (/^(?:proxy authentication required)?$/.test(cause.message)) return 'status'
  }
  return BY_CODE[failure.code]
}

const BY_CODE: Partial<Record<Failure['code'], UpstreamCause>> = {
  source_timeout: 'timeout',
  handler_timeout: 'timeout',
  answer_too_large: 'body',
  upstream_misconfigured: 'status',
  source_limited: 'status',
}

function codeOf(fault: Error): string {
  return 'code' in fault && typeof fault.code === 'string' ? fault.code : ''
}
