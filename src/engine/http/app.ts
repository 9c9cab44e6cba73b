import type { IncomingHttpHeaders } from 'node:http'
import type { RouterContext, RouterMiddleware } from '@koa/router'
import Koa, { HttpError, type Context, type Middleware, type Next } from 'koa'
import type { Observe } from '../access.ts'
import { Failure } from '../errors.ts'
import { serveMcp, type McpServing, type McpSettings } from './mcp.ts'
import { failed, note, problem, respond, type Notes, type Reply } from './reply.ts'
import type { Revision } from './revision.ts'
import { IndexedRouter, prefersPage, templateOf } from './router.ts'

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
    const { place = 'unknown', price, code, cached, logged }: Notes = ctx['state']
    if (logged === true) return
    const { method, status, response } = ctx
    observe({
      method,
      place,
      status,
      outcome: code ?? (status < 400 ? 'ok' : status < 500 ? 'request_malformed' : 'internal'),
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

/** The path and query of a request target. */
interface Target {
  readonly path: string
  readonly query: string
}

/**
 * Splits a request target (RFC 9112 §3.2) without reading anything into it: URL parsers normalize what they find, and every
 * normalized path would be one more spelling. The absolute form is allowed; whose host it names does not matter.
 */
export function splitTarget(target: string): Target {
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '')
  const mark = local.indexOf('?')
  return mark === -1
    ? { path: local, query: '' }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) }
}

/** Accepts one spelling of each path; rewrites an absolute-form target to its path and query. */
function canonicalPaths(ctx: Context, next: Next): Promise<unknown> | undefined {
  const { path, query } = splitTarget(ctx.url)
  if (canonicalPath(path) === undefined) return undefined
  if (!ctx.url.startsWith('/')) ctx.url = query === '' ? path : `${path}?${query}`
  return next()
}

/**
 * The one spelling of a request path that is served: what is matched is what is dispatched. Anything that other software
 * might read as a second spelling of a path is no path at all: empty and dot segments, a trailing slash, `;`,
 * backslashes, and whatever RFC 3986 §6.2.2 would normalise (`%72` for `r`, `%c3` for `%C3`).
 */
export function canonicalPath(raw: string): string | undefined {
  if (raw === '/') return raw
  if (!CHARACTERS.test(raw) || raw.endsWith('/') || /\/\/|%(?:5C|00)/.test(raw)) return undefined
  if (!raw.includes('%') && !raw.includes('.')) return raw
  return raw.slice(1).split('/').every(isCanonical) ? raw : undefined
}

/** RFC 3986 §3.3 pchar without `;`, encoded octets in upper case. */
const CHARACTERS = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@/]|%[0-9A-F]{2})*$/

/** Percent-encoded characters that need no encoding. */
const UNRESERVED = /%(?:2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)/

function isCanonical(segment: string): boolean {
  if (segment === '.' || segment === '..' || UNRESERVED.test(segment)) return false
  const decoded = decodeSegment(segment)
  // An encoded slash is part of a value, and an upstream may decode it: no value may contain dot segments.
  return decoded?.split('/').every((part) => part !== '.' && part !== '..') ?? false
}

/** The decoded text of a segment; undefined when its percent-encoding is invalid. */
export function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
