import { connect } from 'node:tls'
import { fillPath, isLoopback, type Catalog, type Route, world } from '../../engine/internal.ts'
import { fails, warns, ok, type Verdict } from './verdict.ts'
import { reasonOf } from './visit.ts'

/** Longer than a healthy server takes. */
const PATIENCE_MS = 20_000

/** What a buyer meets at the address that documents and challenges name, through everything that stands before the server. */
export async function judgeFront(catalog: Catalog, baseUrl: string | undefined): Promise<Verdict[]> {
  if (baseUrl === undefined)
    return [
      fails('BASE_URL', 'is not set: documents and challenges would name an address of this machine only'),
    ]
  const url = new URL(baseUrl)
  if (isLoopback(baseUrl))
    return [
      fails('BASE_URL', `${baseUrl} is reached from this machine only`),
      ...(await judgeAnswer(catalog, baseUrl)),
    ]
  if (url.protocol !== 'https:')
    return [
      fails(
        'BASE_URL',
        `${baseUrl} has no TLS: anyone on the network path can replace the address in a challenge`,
      ),
    ]
  return [...(await judgeCertificate(url)), ...(await judgeAnswer(catalog, baseUrl))]
}

/** Fewer days than a renewal that fails once needs. */
const DAYS = 14

async function judgeCertificate({ hostname, port }: URL): Promise<Verdict[]> {
  const end = await certificateEnd(hostname, port === '' ? 443 : Number(port))
  if (end === undefined) return []
  const days = Math.floor((end - world.now()) / 86_400_000)
  const says = `its certificate is good for ${days} days`
  return [days < DAYS ? warns('TLS', `${says}: see whether it is renewed`) : ok('TLS', says)]
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
const SENT = ['payment-signature', 'authorization']

async function judgeAnswer({ routes, payments }: Catalog, baseUrl: string): Promise<Verdict[]> {
  const route = routes.find(({ kind, operation }) => kind === 'paid' && !operation.planned)
  if (route === undefined) return []
  const address = baseUrl + concretePath(route)
  try {
    const asked = await world.fetcher(address, requestOf('GET'))
    const preflight = await world.fetcher(address, requestOf('OPTIONS'))
    if (asked.status !== 402)
      return [fails('BASE_URL', `${address} answers ${asked.status} where 402 is due: is it this service?`)]
    const shown = [
      ...(payments.x402 === undefined ? [] : ['payment-required']),
      ...(payments.mpp === undefined ? [] : ['www-authenticate']),
    ]
    return [
      ok('BASE_URL', `${baseUrl} answers an unpaid call with 402`),
      ...judgeSize(asked, shown),
      ...judgeCors(asked, preflight, shown),
    ]
  } catch (fault) {
    const reason = reasonOf(fault)
    return /certificate/.test(reason)
      ? [fails('TLS', `${baseUrl}: ${reason}`)]
      : [warns('BASE_URL', `${baseUrl}: ${reason}; ask again when it serves`)]
  }
}

function requestOf(method: string): RequestInit {
  const headers = {
    Origin: 'https://buyer.example',
    ...(method === 'GET'
      ? {}
      : { 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': SENT.join(', ') }),
  }
  return { method, headers, redirect: 'manual', signal: AbortSignal.timeout(PATIENCE_MS) }
}

function concretePath({ path, parameters }: Route): string {
  return fillPath(path, (name) => String(parameters.find((each) => each.name === name)?.example ?? name))
}

/** As many bytes of headers as common proxies take. */
const MOST_BYTES = 8_192

function judgeSize({ headers }: Response, due: readonly string[]): Verdict[] {
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

function judgeCors(asked: Response, preflight: Response, shown: readonly string[]): Verdict[] {
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
  return [fails('CORS', `${faults.join(', ')}: let what stands in front pass on the headers of this service`)]
}

function listOf({ headers }: Response, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((each) => each.trim().toLowerCase())
}
