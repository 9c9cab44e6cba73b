import {
  createServer,
  STATUS_CODES,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import type { RouterContext, RouterMiddleware } from '@koa/router'
import Koa, { HttpError, type Context, type Middleware, type Next } from 'koa'
import { detailOf, type Observe } from '../access.ts'
import { LARGEST_BYTES } from '../catalog/body.ts'
import { Failure, type ErrorCode } from '../errors.ts'
import { readingTime } from './body.ts'
import { serveMcp, type McpServing, type McpSettings } from './mcp.ts'
import { failed, note, problem, respond, type Notes, type Reply } from './reply.ts'
import type { Revision } from './revision.ts'
import { canonicalPath, IndexedRouter, prefersPage, splitTarget, templateOf } from './router.ts'

export interface AppSettings extends AccessLogSettings, McpSettings {
  readonly trustProxy: boolean
  readonly serving: {
    readonly now: Serving
    /** Whether the stores are about to be closed. */
    readonly stopping: boolean
  }
  /** A route for the operator alone. */
  readonly operatorRoute: OperatorRoute | undefined
}

/** What serves requests from now on. */
export interface Serving extends McpServing {
  /** Documents, live pages and routes of the catalog. */
  readonly routes: RouterMiddleware
}

/** Answers the operator at a path outside of the catalog; undefined for other callers. */
export type OperatorRoute = (path: string, headers: IncomingHttpHeaders) => (() => Promise<Reply>) | undefined

/** The service as a Koa application. */
export function createApp(settings: AppSettings): Koa {
  const { trustProxy, serving } = settings
  const app = new Koa({ proxy: trustProxy })
  const mcp = serveMcp(settings)
  // `problems` reports errors.
  app.silent = true
  app.use(accessLog(settings))
  app.use(problems(settings))
  app.use(hostFaults(settings))
  app.use((ctx, next) => (ctx.path.includes('/mcp') ? mcp(ctx, next) : next()))
  app.use(cors)
  app.use(canonicalPaths)
  app.use(operatorRoutes(settings))
  app.use((ctx: RouterContext, next: Next) => serving.now.routes(ctx, next))
  // Only requests without a matching route reach these two.
  app.use(allowOptions)
  app.use(new IndexedRouter().allowedMethods())
  return app
}

/** Turns errors and unanswered requests into problem documents. */
function problems({ report, serving }: AppSettings): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (fault) {
      if (fault instanceof HttpError && fault.expose) {
        ctx.status = fault.status
        ctx.body = fault.message
        return
      }
      report(fault)
      return respond(
        ctx,
        failed(new Failure('internal', 'something went wrong here'), { charged: 'unknown' }),
      )
    }
    if (ctx.body !== undefined) return
    if (ctx.status === 404) respond(ctx, notFound(ctx, serving.now.revision))
    if (ctx.status === 405) {
      note(ctx, { place: templateOf(ctx) })
      respond(ctx, problem('method_not_allowed', `${ctx.method} is not served here`, { charged: 'no' }))
    }
  }
}

function notFound(ctx: Context, { notFound: page }: Revision): Reply {
  const reply = problem('route_not_found', 'there is nothing at this path', { charged: 'no' })
  if (!prefersPage(ctx)) return { ...reply, vary: 'Accept' }
  const { type, body, headers } = page
  return {
    ...reply,
    headers: { ...reply.headers, ...headers, 'Content-Type': type },
    body: Buffer.from(body),
    vary: 'Accept',
  }
}

/** Refuses requests that the surrounding application has changed so that a sale would fail; charges nothing. */
function hostFaults({ serving, report }: AppSettings): Middleware {
  return (ctx, next) => {
    if (serving.stopping) {
      const headers = { 'Retry-After': '2', Connection: 'close' }
      respond(ctx, problem('ledger_unavailable', 'the service is stopping', { charged: 'no', headers }))
      return
    }
    const fault = mountFault(ctx)
    if (fault === undefined) return next()
    report(new Error(fault))
    respond(ctx, problem('internal', fault, { charged: 'no' }))
  }
}

/** A mistake in mounting this application, if the request shows one. */
function mountFault({ req, url, originalUrl }: Context): string | undefined {
  // Express and connect keep the original URL under this name; koa-mount changes the URL of the context.
  const sent = 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : originalUrl
  if (sent !== url && sent.endsWith(url === '/' ? '' : url))
    return 'this service is mounted below a path prefix, and its addresses would be wrong: mount it at the root of its host'
  if (req.readableDidRead && !BODYLESS.has(req.method ?? ''))
    return 'the body of this request was read before the service got it: mount the service before body parsers'
  return undefined
}

const BODYLESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

function operatorRoutes({ operatorRoute }: AppSettings): Middleware {
  return (ctx, next) => {
    const reads = ctx.method === 'GET' || ctx.method === 'HEAD'
    const answer = reads ? operatorRoute?.(ctx.path, ctx.headers) : undefined
    if (answer === undefined) return next()
    note(ctx, { place: ctx.path })
    return answer().then((reply) => respond(ctx, reply))
  }
}

export interface AccessLogSettings {
  readonly now: () => number
  /** Called for every request; undefined: no log. */
  readonly observe: Observe | undefined
}

/** Writes one line per request. */
function accessLog({ now, observe }: AccessLogSettings): Middleware {
  if (observe === undefined) return (_, next) => next()
  return async (ctx, next) => {
    const began = now()
    await next()
    const { place = 'unknown', price, code, detail, cached, logged }: Notes = ctx['state']
    if (logged === true) return
    const { method, status, response } = ctx
    const outcome = code ?? (status < 400 ? 'ok' : status < 500 ? 'request_malformed' : 'internal')
    observe({
      method,
      place,
      status,
      outcome,
      detail: detailOf(status, outcome, detail),
      price,
      cached,
      ms: now() - began,
      payment: paymentOf(response),
    })
  }
}

/** The payment of an unresolved settlement is in the Location of its answer. */
function paymentOf(response: Context['response']): string | undefined {
  const payment: string | undefined = response.get('Ratecard-Payment')
  const location: string | undefined = response.get('Location')
  return payment ?? location?.replace('/payments/', '')
}

/** Headers of both protocols that browser scripts may read. */
const CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'PAYMENT-REQUIRED, PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt, Retry-After, Location, ETag, Link, Ratecard-Payment, Ratecard-Charged, Ratecard-Sandbox',
}
const PREFLIGHT = {
  // mppx sends Accept-Payment, and @x402/fetch sends the last one as a request header, so browsers ask for them.
  'Access-Control-Allow-Headers':
    'PAYMENT-SIGNATURE, Authorization, Accept-Payment, Content-Type, Accept, Access-Control-Expose-Headers',
  'Access-Control-Max-Age': '86400',
}

/** Allows every origin to read every answer. */
function cors(ctx: Context, next: Next): Promise<void> {
  ctx.set(CORS)
  return next()
}

/** Adds OPTIONS to the methods that the router allows, and answers it. */
async function allowOptions(ctx: Context, next: Next): Promise<void> {
  await next()
  const allowed: string | undefined = ctx.response.get('Allow')
  if (allowed === undefined) return
  const methods = [...allowed.split(', '), 'OPTIONS'].toSorted().join(', ')
  ctx.set('Allow', methods)
  if (ctx.method !== 'OPTIONS') return
  ctx.set({ 'Access-Control-Allow-Methods': methods, ...PREFLIGHT })
  ctx.status = 204
}

/** Accepts one spelling of each path; rewrites an absolute-form target to its path and query. */
function canonicalPaths(ctx: Context, next: Next): Promise<unknown> | undefined {
  const { path, query } = splitTarget(ctx.url)
  if (canonicalPath(path) === undefined) return undefined
  if (!ctx.url.startsWith('/')) ctx.url = query === '' ? path : `${path}?${query}`
  return next()
}

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
