import { didYouMean } from '../catalog/issue.ts'
import { addressOf } from '../documents/registry.ts'
import { type IncomingHttpHeaders } from 'node:http'
import type { RouterContext, RouterMiddleware } from '@koa/router'
import Koa, { HttpError, type Context, type Middleware, type Next } from 'koa'
import compose from 'koa-compose'
import { basePathOf } from '../base/base-path.ts'
import { Failure } from '../base/errors.ts'
import type { Tracing } from '../base/tracing.ts'
import { serveMcp, type McpServing, type McpSettings } from './mcp.ts'
import { completeLinks, placeOf } from './mounting.ts'
import { failed, note, problem, respond, type Reply } from './reply.ts'
import type { Revision } from './revision.ts'
import { STOPPING } from './stopping.ts'
import { IndexedRouter, templateOf } from './indexed-router.ts'
import { canonicalPath, splitTarget } from './request-target.ts'
import type { Boundary } from './boundary.ts'
import { passthrough, type PassthroughSettings } from './passthrough.ts'
import { prefersPage } from './payment-required-page.ts'
import type { AccessLogSettings } from './access-log.ts'
import { accessLog } from './access-log.ts'
import { cors, allowOptions } from './cors.ts'
import { requestTurns } from './request-turns.ts'
import { tracedRequests } from './traced-requests.ts'

export interface AppSettings
  extends AccessLogSettings, McpSettings, Omit<PassthroughSettings, 'serving' | 'usageStore'> {
  readonly serving: { readonly now: Serving }
  /** A route for the operator alone. */
  readonly operatorRoute: OperatorRoute | undefined
  readonly tracing?: Tracing | undefined
}

/** What serves requests from now on. */
export interface Serving extends McpServing {
  /** Documents, live pages and routes of the catalog. */
  readonly routes: RouterMiddleware
  /** Undefined when there is no site behind the catalog. */
  readonly boundary: Boundary | undefined
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
  if (settings.tracing !== undefined) app.use(tracedRequests(settings.tracing))
  app.use(accessLog(settings))
  app.use(leaving(settings))
  app.use(requestTurns())
  if (basePathOf(settings.baseUrl) !== '') app.use(completeLinks(settings.baseUrl))
  app.use(problems(settings))
  app.use(mounted(settings))
  app.use((ctx, next) => (ctx.path.includes('/mcp') ? mcp(ctx, next) : next()))
  if (settings.operatorRoute !== undefined) app.use(operatorRoutes(settings.operatorRoute))
  app.use(passthrough(settings, ofCatalog(serving)))
  return app
}

/** Answers what belongs to the catalog. */
function ofCatalog(serving: AppSettings['serving']): (ctx: RouterContext, next: Next) => unknown {
  return compose<RouterContext>([
    cors,
    canonicalPaths,
    (ctx, next) => serving.now.routes(ctx, next),
    // Only requests without a matching route reach these two.
    allowOptions,
    new IndexedRouter().allowedMethods(),
  ])
}

/** Closes each connection after its answer once the process is to stop, so that no request meets a closed one. */
function leaving({ phase }: AppSettings): Middleware {
  return async (ctx, next) => {
    await next()
    if (phase() !== 'serving' && !ctx.headerSent) ctx.set('Connection', 'close')
  }
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
    if (ctx.body !== undefined || ctx.respond === false) return
    if (ctx.status === 404) respond(ctx, notFound(ctx, serving.now.revision))
    if (ctx.status === 405) {
      note(ctx, { place: templateOf(ctx) })
      const allowed: string | undefined = ctx.response.get('Allow')
      const detail = `${ctx.method} is not served here${allowed ? `: ${allowed} ${allowed.includes(',') ? 'are' : 'is'}` : ''}`
      respond(ctx, problem('method_not_allowed', detail, { charged: 'no' }))
    }
  }
}

/** Comparing a path with others takes time, and anybody can ask for it. */
const MOST_SUGGESTIONS = 300
const LONGEST_MISTAKE = 120

/** Why nothing is here, with the path that was probably meant and the document that lists them all. */
function nothingAt(path: string, { catalog, facts }: Revision): string {
  const isCheap = path.length <= LONGEST_MISTAKE && catalog.routes.length <= MOST_SUGGESTIONS
  const guess = isCheap
    ? didYouMean(
        path,
        catalog.routes.map((route) => basePathOf(facts.baseUrl) + route.path),
      )
    : ''
  const list = addressOf('llms', catalog, facts.baseUrl) ?? addressOf('openapi', catalog, facts.baseUrl)
  return `there is nothing at this path${guess}${list === undefined ? '' : `; ${list} lists all paths`}`
}

function notFound(ctx: Context, revision: Revision): Reply {
  const reply = problem('route_not_found', nothingAt(ctx.path, revision), { charged: 'no' })
  if (!prefersPage(ctx)) return { ...reply, vary: 'Accept' }
  const { type, body, headers } = revision.notFound
  return {
    ...reply,
    headers: { ...reply.headers, ...headers, 'Content-Type': type },
    body: Buffer.from(body),
    vary: 'Accept',
  }
}

/**
 * Removes the base path, and refuses requests that the surrounding application has changed so that a sale would fail;
 * charges nothing.
 */
function mounted({ baseUrl, phase, report }: AppSettings): Middleware {
  const basePath = basePathOf(baseUrl)
  return (ctx, next) => {
    if (phase() === 'stopping') return respond(ctx, STOPPING)
    const place = placeOf(ctx, basePath)
    if (place.kind === 'elsewhere') return undefined
    const fault = place.kind === 'fault' ? place.reason : bodyFault(ctx)
    if (fault !== undefined) {
      report(new Error(fault))
      return respond(ctx, problem('internal', fault, { charged: 'no' }))
    }
    const { url } = ctx
    if (place.kind === 'fault' || place.url === url) return next()
    ctx.url = place.url
    // What surrounds this application sees its own URL again.
    return next().finally(() => (ctx.url = url))
  }
}

function bodyFault({ req }: Context): string | undefined {
  return req.readableDidRead && !BODYLESS.has(req.method ?? '')
    ? 'the body of this request was read before the service got it: mount the service before body parsers'
    : undefined
}

const BODYLESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

function operatorRoutes(operatorRoute: OperatorRoute): Middleware {
  return (ctx, next) => {
    const reads = ctx.method === 'GET' || ctx.method === 'HEAD'
    const answer = reads ? operatorRoute(ctx.path, ctx.headers) : undefined
    if (answer === undefined) return next()
    note(ctx, { place: ctx.path })
    return answer().then((reply) => respond(ctx, reply))
  }
}

/** Accepts one spelling of each path; rewrites an absolute-form target to its path and query. */
function canonicalPaths(ctx: Context, next: Next): Promise<unknown> | undefined {
  const { path, query } = splitTarget(ctx.url)
  if (canonicalPath(path) === undefined) return undefined
  if (!ctx.url.startsWith('/')) ctx.url = query === '' ? path : `${path}?${query}`
  return next()
}
