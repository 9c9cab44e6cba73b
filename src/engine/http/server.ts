import type Koa from 'koa'
import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { LARGEST_BYTES } from '../catalog/body.ts'
import type { ErrorCode } from '../base/errors.ts'
import { readingTime } from './body-reader.ts'
import { problem, type Reply } from './reply.ts'

/** Limit of the headers and the URL: arguments travel in the query, and Node's default of 16 KB would be too small. */
const LARGEST_HEADERS = 65_536

/**
 * How long an idle connection is kept, in milliseconds: longer than proxies and load balancers keep theirs (mostly 60 s), which
 * would otherwise send a request on a connection that is being closed.
 */
const IDLE_MS = 75_000

/** How much longer than clients are told, at most: a late request would be lost with its connection. */
const LONGEST_GRACE_MS = 5_000

export interface ServerSettings {
  /** Sent with every answer. */
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds within which a client must send its headers. */
  readonly headersWithin?: number
  /** Milliseconds within which a client must send its whole request. */
  readonly requestWithin?: number
  /** Milliseconds after which an unread answer closes its connection. */
  readonly unreadWithin?: number
  /** Milliseconds for which clients are told that an idle connection is kept. */
  readonly idleWithin?: number
}

export interface HttpServer extends Server {
  /** Of open connections, idle ones too. */
  readonly sockets: ReadonlySet<Socket>
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
  idleWithin = IDLE_MS,
}: ServerSettings = {}): HttpServer {
  const server = createServer({
    maxHeaderSize: LARGEST_HEADERS,
    requestTimeout: requestWithin,
    headersTimeout: headersWithin,
    keepAliveTimeout: idleWithin,
    connectionsCheckingInterval: Math.min(5_000, headersWithin),
    // Node would silently drop a second Authorization header, and with it a second payment.
    joinDuplicateHeaders: true,
    // Node would refuse such a request without a body; `attach` answers it.
    requireHostHeader: false,
  })
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const unanswered = new Set<ServerResponse>()
  /** Connections that have been idle for as long as clients were told. */
  const inGrace = new WeakSet<Socket>()
  server.on('request', (request, response) => {
    inGrace.delete(request.socket)
    unanswered.add(response)
    // A compressed answer to a paid tool call has eleven that belong together, where Node suspects a leak.
    response.setMaxListeners(20)
    response.on('close', () => unanswered.delete(response))
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    answering.answer(request, response)
  })
  server.timeout = unreadWithin
  server.on('timeout', (socket) => {
    // The connection was idle for that long, which is expected while a handler runs.
    const waits = Array.from(unanswered).some((response) => response.socket === socket)
    if (waits && socket.writableLength === 0) return
    if (waits || inGrace.has(socket)) return void socket.destroy()
    inGrace.add(socket)
    socket.setTimeout(Math.min(idleWithin, LONGEST_GRACE_MS))
  })
  // A response that waits for an earlier one would have it between its headers and its body. The client need not wait for
  // it (RFC 9110 §10.1.1).
  server.on('checkContinue', (request, response) => {
    if (response.socket !== null) response.writeContinue()
    server.emit('request', request, response)
  })
  // RFC 9110 §10.1.1 allows ignoring an expectation; Node would refuse it without a body.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('clientError', (fault: NodeJS.ErrnoException, socket: Socket) => {
    // An answer that has begun would get the words of another.
    const isAnswered = Array.from(unanswered).some((each) => each.socket === socket && each.headersSent)
    if (fault.code === 'ECONNRESET' || !socket.writable || isAnswered) socket.destroy()
    else refuse(socket, ...refusalOf(fault.code), headers)
  })
  const answering: HttpServer = Object.assign(server, {
    sockets,
    unanswered,
    answer: starting,
  })
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
