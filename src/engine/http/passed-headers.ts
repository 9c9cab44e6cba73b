/** What the site behind the catalog is told about a request that passes. */
export interface PassedRequest {
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders: readonly string[]
  readonly method: string
  /** Host of the site. */
  readonly site: string
  /** The chain of addresses from the client to this process. */
  readonly forwardedFor: string
  readonly forwardedProto: string
  readonly forwardedHost: string
  /** What was removed from the path; empty for none. */
  readonly forwardedPrefix: string
  readonly via: string
  readonly requestId: string
}

type Header = readonly [name: string, value: string]

/** RFC 9110 §7.6.1, and what older software adds to it. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * What would make the site serve another path or method than the one that was looked at, what only a proxy may say, and
 * payments, which buy nothing there. Gateways of CGI, WSGI and Rack take `_` for `-`, so names are compared that way.
 */
const KEPT_BACK =
  /^(?:content-length|expect|forwarded|host|path-info|payment-signature|request-uri|script-name|via|x-(?:accel|forwarded|original|override|rewrite|sendfile)(?:-.*)?|x-(?:http-)?method(?:-override)?|x-path-info|x-payment|x-real-ip|x-request-id|x-script-name)$/

/** The headers for the site. */
export function requestHeaders(request: PassedRequest): string[] {
  const { rawHeaders, method, site, forwardedFor, forwardedProto, forwardedHost, forwardedPrefix } = request
  const all = pairsOf(rawHeaders)
  const passed = withoutConnection(all).filter(
    ([name, value]) => !KEPT_BACK.test(nameOf(name)) && !isPayment(name, value),
  )
  return [
    ['Host', site],
    ...passed,
    ...framing(all, method),
    ['Via', request.via],
    ['X-Forwarded-For', forwardedFor],
    ['X-Forwarded-Proto', forwardedProto],
    ['X-Forwarded-Host', forwardedHost],
    ...(forwardedPrefix === '' ? [] : [['X-Forwarded-Prefix', forwardedPrefix]]),
    ['X-Request-Id', request.requestId],
  ].flat()
}

/** What frames the body, whatever Connection names: Node.js has read the body by it. */
function framing(headers: readonly Header[], method: string): Header[] {
  if (headers.some(([name]) => name.toLowerCase() === 'transfer-encoding'))
    return [['Transfer-Encoding', 'chunked']]
  const [, length = BODYLESS.has(method) ? undefined : '0'] =
    headers.find(([name]) => name.toLowerCase() === 'content-length') ?? []
  return length === undefined ? [] : [['Content-Length', length]]
}

const BODYLESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE'])

/** The headers of the site's answer for the client, which knows the request by the name that the log has. */
export function answerHeaders(rawHeaders: readonly string[]): Header[] {
  return withoutConnection(pairsOf(rawHeaders)).filter(([name]) => nameOf(name) !== 'x-request-id')
}

/** All values of a header, joined as RFC 9110 §5.3 allows. */
export function valueOf(rawHeaders: readonly string[], wanted: string): string {
  return pairsOf(rawHeaders)
    .flatMap(([name, value]) => (name.toLowerCase() === wanted ? [value] : []))
    .join(', ')
}

function withoutConnection(headers: readonly Header[]): Header[] {
  const named = headers
    .filter(([name]) => nameOf(name) === 'connection')
    .flatMap(([, value]) => value.split(',').map((each) => nameOf(each.trim())))
  const gone = new Set([...OF_CONNECTION, ...named])
  return headers.filter(([name]) => !gone.has(nameOf(name)))
}

function isPayment(name: string, value: string): boolean {
  return (
    nameOf(name) === 'authorization' && value.split(',').some((each) => /^\s*payment(?:\s|$)/i.test(each))
  )
}

function nameOf(name: string): string {
  return name.toLowerCase().replaceAll('_', '-')
}

function pairsOf(raw: readonly string[]): Header[] {
  const pairs: Header[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([raw[at] ?? '', raw[at + 1] ?? ''])
  return pairs
}
