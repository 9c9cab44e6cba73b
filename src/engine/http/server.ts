import { once } from 'node:events'
import {
  createServer,
  request as sendRequest,
  STATUS_CODES,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { BlockList, isIP, Server as NetServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import type Koa from 'koa'
import type { ErrorCode } from '../errors.ts'
import { LARGEST_BYTES } from '../catalog/body.ts'
import { readingTime } from './body.ts'
import { problem, type Reply } from './reply.ts'

/** Limit of the headers and the URL: arguments travel in the query, and Node's default of 16 KB would be too small. */
const LARGEST_HEADERS = 65_536

export interface ServerSettings {
  /** Sent with every answer. */
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds within which a client must send its headers. */
  readonly headersWithin?: number
  /** Milliseconds within which a client must send its whole request. */
  readonly requestWithin?: number
  /** Milliseconds after which an unread answer closes its connection. */
  readonly unreadWithin?: number
}

export interface HttpServer extends Server {
  /** Requests without a complete answer. */
  readonly unanswered: ReadonlySet<ServerResponse>
  /** Answers the requests. */
  answer: RequestListener
}

/** An HTTP server that answers `service_starting` before `attach`, and malformed requests with a problem. */
export function createHttpServer({
  headers = {},
  headersWithin = 15_000,
  requestWithin = 20_000 + readingTime(LARGEST_BYTES),
  unreadWithin = 30_000,
}: ServerSettings = {}): HttpServer {
  const server = createServer({
    maxHeaderSize: LARGEST_HEADERS,
    requestTimeout: requestWithin,
    headersTimeout: headersWithin,
    connectionsCheckingInterval: Math.min(5_000, headersWithin),
    // Node would silently drop a second Authorization header, and with it a second payment.
    joinDuplicateHeaders: true,
    // Node would refuse such a request without a body; `attach` answers it.
    requireHostHeader: false,
  })
  const unanswered = new Set<ServerResponse>()
  server.on('request', (request, response) => {
    unanswered.add(response)
    response.once('close', () => unanswered.delete(response))
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    answering.answer(request, response)
  })
  server.timeout = unreadWithin
  server.on('timeout', (socket) => {
    // The connection was idle for that long, which is expected while a handler runs.
    const waits = Array.from(unanswered).some((response) => response.socket === socket)
    if (!waits || socket.writableLength > 0) socket.destroy()
  })
  // RFC 9110 §10.1.1 allows ignoring an expectation; Node would refuse it without a body.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('clientError', (fault: NodeJS.ErrnoException, socket: Socket) => {
    if (fault.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else refuse(socket, ...refusalOf(fault.code), headers)
  })
  const answering: HttpServer = Object.assign(server, { unanswered, answer: starting })
  return answering
}

const starting: RequestListener = (_, response) => {
  const headers = { 'Retry-After': '1' }
  send(response, problem('service_starting', 'the service is starting', { charged: 'no', headers }))
}

/** Lets the application answer from now on, including middleware that is added before the first request. */
export function attach(server: HttpServer, app: Koa): void {
  let answer: ReturnType<Koa['callback']> | undefined
  server.answer = (request, response) => {
    if (namesHost(request)) void (answer ??= app.callback())(request, response)
    else
      send(response, problem('request_malformed', 'a request of HTTP/1.1 names its Host', { charged: 'no' }))
  }
}

/**
 * Leaves the port to another process that listens on it. Takes no more connections; a request that still comes on an open one
 * is passed on, since closing that connection could meet the request halfway. Resolves when all requests are answered that
 * came before; `closed` when the clients have closed their connections.
 */
export async function handOver(
  server: HttpServer,
  port: number,
  host: string,
): Promise<{ readonly closed: Promise<unknown> }> {
  const closed = once(server, 'close')
  const before = Array.from(server.unanswered)
  for (const response of before) if (!response.headersSent) response.setHeader('Connection', 'close')
  server.answer = passOn(port, WILDCARDS.get(host) ?? host)
  // That of HTTP closes idle connections.
  NetServer.prototype.close.call(server)
  await Promise.all(before.filter(({ closed }) => !closed).map((response) => once(response, 'close')))
  return { closed }
}

const WILDCARDS: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
])

function passOn(port: number, host: string): RequestListener {
  return (request, response) => {
    const { method, url: path } = request
    const headers = { ...request.headers, connection: 'close' }
    const passed = sendRequest({ port, host, method, path, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      pipeline(answer, response, () => undefined)
    })
    passed.on('error', () => response.destroy())
    response.once('close', () => passed.destroy())
    pipeline(request, passed, () => undefined)
  }
}

/** RFC 9112 §3.2 requires a Host header; its value does not matter. */
function namesHost({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion !== '1.1' || headers.host !== undefined
}

function send(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body)
}

function refusalOf(code: string | undefined): readonly [ErrorCode, string] {
  if (code === 'HPE_HEADER_OVERFLOW') return ['headers_too_large', 'URL and headers are larger than 64 KB']
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return ['request_timeout', 'the request did not arrive in time']
  return ['request_malformed', 'this is not an HTTP request']
}

/** Delay before closing a connection whose client still writes: closing it at once would lose the answer. */
const LINGER_MS = 1_000

function refuse(
  socket: Socket,
  code: ErrorCode,
  detail: string,
  more: Readonly<Record<string, string>>,
): void {
  const { status, headers, body } = problem(code, detail, { charged: 'no', headers: more })
  const lines = Object.entries({
    ...headers,
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  })
  const head = lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n\r\n${String(body)}`)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

/** Resolves to the port once the server listens. */
export function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

/**
 * Accepts no more requests and resolves when pending ones are answered, at the latest after `patience` milliseconds.
 * Idle connections are closed at once: browsers keep some open.
 */
export function closeServer(server: HttpServer, patience: number): Promise<void> {
  return new Promise((resolve) => {
    const closeSpare = (): void => {
      if (server.unanswered.size === 0) server.closeAllConnections()
      else server.closeIdleConnections()
    }
    const sweep = setInterval(closeSpare, 20)
    const limit = setTimeout(() => server.closeAllConnections(), patience)
    server.close(() => {
      clearInterval(sweep)
      clearTimeout(limit)
      resolve()
    })
    closeSpare()
  })
}

/** Private address ranges: in X-Forwarded-For, further proxies of the operator. */
const INSIDE = new BlockList()
for (const [network, bits] of [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
] as const)
  INSIDE.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  INSIDE.addSubnet(network, bits, 'ipv6')
const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/**
 * Who asks, as far as can be told: an address, or the /64 of IPv6 that one subscriber has. Behind a proxy it is the
 * right-most address in X-Forwarded-For that is not inside: what stands left of it, the caller may have written.
 * Undefined for this machine itself: its operator, or a proxy of theirs that nobody has told us to trust.
 */
export function clientOf(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  trustProxy: boolean,
): string | undefined {
  const peer = plain(socket.remoteAddress ?? '')
  const hops = trustProxy ? forwarded(headers['x-forwarded-for']) : []
  const client = hops.findLast((hop) => !isIn(INSIDE, hop) && !isIn(LOOPBACK, hop)) ?? hops.at(-1) ?? peer
  return client === '' || isIn(LOOPBACK, client) ? undefined : subscriber(client)
}

/** An entry that is not an address ends the list: no proxy wrote anything to its left. */
function forwarded(header: string | readonly string[] | undefined): string[] {
  const hops = [header ?? []]
    .flat()
    .join(',')
    .split(',')
    .map((hop) => plain(hop.trim()))
  return hops.slice(hops.findLastIndex((hop) => hop === '') + 1)
}

/** An address without brackets, port and zone, IPv4 in dotted form; empty for anything else. */
function plain(text: string): string {
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
  const address = bare.replace(/%.*$/, '')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
  return isIP(mapped) === 0 ? '' : mapped
}

function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function subscriber(address: string): string {
  if (isIP(address) !== 6) return address
  // The URL parser normalizes an address to its shortest form.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const [left = '', right] = groups
  const known = left === '' ? [] : left.split(':')
  const rest = right === undefined || right === '' ? [] : right.split(':')
  const all =
    right === undefined ? known : [...known, ...Array(8 - known.length - rest.length).fill('0'), ...rest]
  return `${all.slice(0, 4).join(':')}::/64`
}
