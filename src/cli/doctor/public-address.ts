import { connect } from 'node:tls'
import { examplePath, type Catalog } from '../../engine/catalog/catalog.ts'
import { isLoopback } from '../../engine/base/loopback.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import { fails, warns, ok, type CheckResult } from './check-result.ts'
import { PATIENCE_MS, visit, type Visit } from './visit.ts'

/** What a buyer sees at the public address, through every proxy in front of the server. */
export async function checkPublicAddress(
  catalog: Catalog,
  baseUrl: string | undefined,
): Promise<CheckResult[]> {
  if (baseUrl === undefined)
    return [
      fails('BASE_URL', 'is not set: documents and challenges would name an address of this machine only'),
    ]
  const url = new URL(baseUrl)
  if (isLoopback(baseUrl))
    return [
      fails('BASE_URL', `${baseUrl} is reached from this machine only`),
      ...(await checkAnswer(catalog, baseUrl)),
    ]
  if (url.protocol !== 'https:')
    return [
      fails(
        'BASE_URL',
        `${baseUrl} has no TLS: anyone on the network path can replace the address in a challenge`,
      ),
    ]
  return [...(await checkCertificate(url)), ...(await checkAnswer(catalog, baseUrl))]
}

/** Fewer days than a renewal that fails once needs. */
const DAYS = 14

async function checkCertificate({ hostname, port }: URL): Promise<CheckResult[]> {
  const end = await certificateEnd(hostname, port === '' ? 443 : Number(port))
  if (end === undefined) return []
  const days = Math.floor((end - systemRuntime.now()) / 86_400_000)
  const message = `its certificate is good for ${days} days`
  return [days < DAYS ? warns('TLS', `${message}: see whether it is renewed`) : ok('TLS', message)]
}

/** Milliseconds since the epoch; undefined where there is no certificate that holds. */
function certificateEnd(host: string, port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, servername: host, timeout: PATIENCE_MS })
    const end = (time: number | undefined): void => {
      socket.destroy()
      resolve(time)
    }
    socket.once('secureConnect', () => end(Date.parse(socket.getPeerCertificate().valid_to)))
    socket.once('error', () => end(undefined))
    socket.once('timeout', () => end(undefined))
  })
}

/** What clients in a browser have to send and to see. */
const SENT = ['payment-signature', 'x-payment', 'authorization']

async function checkAnswer({ routes, payments }: Catalog, baseUrl: string): Promise<CheckResult[]> {
  const route = routes.find(({ kind, operation }) => kind === 'paid' && !operation.planned)
  if (route === undefined) return []
  const path = examplePath(route)
  const Origin = 'https://buyer.example'
  const asked = await visit(baseUrl, path, { headers: { Origin } })
  const preflight = await visit(baseUrl, path, {
    method: 'OPTIONS',
    headers: {
      Origin,
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': SENT.join(', '),
    },
  })
  if (asked.kind === 'fault') return unreached(baseUrl, asked)
  if (preflight.kind === 'fault') return unreached(baseUrl, preflight)
  if (asked.status !== 402)
    return [
      fails('BASE_URL', `${baseUrl}${path} answers ${asked.status} instead of 402: is it this service?`),
    ]
  const shown = [
    ...(payments.x402 === undefined ? [] : ['payment-required']),
    ...(payments.mpp === undefined ? [] : ['www-authenticate']),
  ]
  return [
    ok('BASE_URL', `${baseUrl} answers an unpaid call with 402`),
    ...checkSize(asked, shown),
    ...checkCors(asked, preflight, shown),
  ]
}

function unreached(baseUrl: string, { reason }: Extract<Visit, { readonly kind: 'fault' }>): CheckResult[] {
  return /certificate/.test(reason)
    ? [fails('TLS', `${baseUrl}: ${reason}`)]
    : [warns('BASE_URL', `${baseUrl}: ${reason}; ask again when it serves`)]
}

interface Answer {
  readonly headers: Headers
}

/** Limit of common proxies for headers, in bytes. */
const MOST_BYTES = 8_192

function checkSize({ headers }: Answer, due: readonly string[]): CheckResult[] {
  const lost = due.filter((name) => !headers.has(name))
  const bytes = [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
  return [
    ...lost.map((name) =>
      warns('headers', `${name} does not arrive: it is not offered, or something in front drops it`),
    ),
    bytes > MOST_BYTES
      ? fails('headers', `a 402 has ${bytes} bytes of headers, and proxies take ${MOST_BYTES}`)
      : ok('headers', `a 402 has ${bytes} of ${MOST_BYTES} bytes of headers`),
  ]
}

function checkCors(asked: Answer, preflight: Answer, shown: readonly string[]): CheckResult[] {
  const exposed = listOf(asked, 'access-control-expose-headers')
  const allowed = listOf(preflight, 'access-control-allow-headers')
  const hidden = shown.filter(
    (name) => asked.headers.has(name) && !exposed.includes(name) && !exposed.includes('*'),
  )
  const refused = SENT.filter((name) => !allowed.includes(name))
  const origin = asked.headers.get('access-control-allow-origin')
  if (origin === '*' && hidden.length === 0 && refused.length === 0)
    return [ok('CORS', 'agents in a browser can read challenges and send payments')]
  const faults = [
    ...(origin === '*' ? [] : [`Access-Control-Allow-Origin is ${origin ?? 'missing'}, not *`]),
    ...hidden.map((name) => `${name} is not exposed`),
    ...refused.map((name) => `${name} may not be sent`),
  ]
  return [fails('CORS', `${faults.join(', ')}: configure the proxy to pass on the headers of this service`)]
}

function listOf({ headers }: Answer, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((each) => each.trim().toLowerCase())
}
