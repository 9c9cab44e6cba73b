import type { IncomingHttpHeaders } from 'node:http'
import Koa, { type Context, type Middleware } from 'koa'
import type { Observe } from '../access.ts'
import { Failure } from '../errors.ts'
import type { Route } from '../catalog/catalog.ts'
import { clientOf } from './client.ts'
import type { Deliveries } from './delivery.ts'
import { nameOfRoute } from './figures.ts'
import { goneSignal } from './gone.ts'
import type { InFlight } from './in-flight.ts'
import { liveReply, type LiveSettings } from './live.ts'
import { note, tellOf, type Notes } from './observed.ts'
import { paymentIdOf, paymentState } from './payment-state.ts'
import { negotiate, prefersPage, type Shown } from './negotiate.ts'
import { canonicalPath, splitTarget, type Target } from './path.ts'
import { serveFree } from './free.ts'
import { servePaid, type Counter } from './paid.ts'
import { failed, problem, type Reply } from './reply.ts'
import type { Answered, RouteRequest } from './request.ts'
import type { Page, Revision, ServedRoute } from './revision.ts'
import { answerTools, cardAt, toolboxAt, type ToolsSettings } from './tools.ts'
import { timed } from '../work/timed.ts'

export interface AppSettings extends Counter, LiveSettings, ToolsSettings {
  /** The revision that serves now; requests keep the one they began with. */
  readonly current: () => Revision
  readonly sandbox: boolean
  readonly trustProxy: boolean
  readonly inFlight: InFlight
  readonly deliveries: Deliveries
  /** Told of every request; undefined: nobody wants to know. */
  readonly observe: Observe | undefined
  /** What the operator alone is shown. */
  readonly aside: Aside | undefined
}

/** Answers a path that is no part of the catalog for whom it is meant; undefined: to this caller there is nothing. */
export type Aside = (path: string, headers: IncomingHttpHeaders) => (() => Promise<Reply>) | undefined

/** What Koa carries from one step to the next. */
interface State {
  revision: Revision
  /** Values of the path's templates. */
  values: Readonly<Record<string, string>>
  target: Target
}

const METHODS = 'GET, HEAD, OPTIONS'

/** Both protocols' headers, for browsers: what they may send, and what their scripts may read. */
const CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'PAYMENT-REQUIRED, PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt, Retry-After, Location, ETag, Link, Ratecard-Payment, Ratecard-Sandbox',
}
const PREFLIGHT = {
  'Access-Control-Allow-Methods': METHODS,
  // Accept-Payment is sent by mppx, the last one by @x402/fetch as a request header, so browsers ask for them.
  'Access-Control-Allow-Headers':
    'PAYMENT-SIGNATURE, Authorization, Accept-Payment, Content-Type, Accept, Access-Control-Expose-Headers',
  'Access-Control-Max-Age': '86400',
}

/** The service as a Koa application: failures → path → document or route → reply. */
export function createApp(settings: AppSettings): Koa {
  const app = new Koa({ proxy: settings.trustProxy })
  app.silent = true
  app.use(guard(settings))
  app.use(dispatch(settings))
  return app
}

/** Nothing thrown below reaches the client as it is. */
function guard({ report, now, observe }: AppSettings): Middleware {
  return async (ctx, next) => {
    const began = now()
    try {
      await next()
    } catch (fault) {
      report(fault)
      send(ctx, failed(new Failure('internal', 'something went wrong here'), 'unknown'))
    }
    if (observe !== undefined) tellOf(ctx, now() - began, observe)
  }
}

function dispatch(settings: AppSettings): Middleware {
  return async (ctx, next) => {
    const revision = settings.current()
    const target = splitTarget(ctx.req.url ?? '')
    const path = canonicalPath(target.path)
    const page =
      path === undefined ? undefined : (revision.pages.get(path) ?? cardAt(revision, ctx.host, path))
    const live = path === undefined ? undefined : livePage(settings, revision, path, ctx.headers)
    const found =
      path === undefined || page !== undefined || live !== undefined ? undefined : revision.table.find(path)
    if (found !== undefined) note(ctx, placeOf(found.served.route))
    else if (path !== undefined && (page !== undefined || live !== undefined))
      note(ctx, { place: paymentIdOf(path) === undefined ? path : '/payments/{id}' })
    if (page === undefined && live === undefined && found === undefined) {
      const toolbox = path === undefined ? undefined : toolboxAt(revision, ctx.host, path)
      if (toolbox !== undefined) await answerTools(settings, ctx, revision, toolbox)
      else send(ctx, problem('route_unknown', 'there is nothing at this path', { charged: 'no' }))
    } else if (ctx.method === 'OPTIONS') {
      send(ctx, { status: 204, headers: { ...PREFLIGHT, Allow: METHODS }, body: '' })
    } else if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      send(
        ctx,
        problem('method_not_allowed', `${ctx.method} is not served here`, {
          charged: 'no',
          headers: { Allow: METHODS },
        }),
      )
    } else if (live !== undefined) send(ctx, await live())
    else if (page !== undefined) sendPage(ctx, page)
    else if (found !== undefined) {
      const state: State = { revision, values: found.path, target }
      Object.assign(ctx.state, state)
      await found.run(ctx, next)
    }
  }
}

function placeOf({ path, kind, operation }: Route): Notes {
  return { place: path, price: kind === 'paid' ? operation.price : undefined }
}

/** What is not rendered once a revision but told anew each time. */
function livePage(
  settings: AppSettings,
  revision: Revision,
  path: string,
  headers: IncomingHttpHeaders,
): (() => Promise<Reply>) | undefined {
  const aside = settings.aside?.(path, headers)
  if (aside !== undefined) return aside
  const live = revision.live.get(path)
  if (live !== undefined) return () => liveReply(settings, revision, live)
  const id = paymentIdOf(path)
  return id === undefined ? undefined : () => paymentState(settings.paywall.ledger, id)
}

/** Answers one route: what stands in its layer of the router. */
export function answerRoute(settings: AppSettings): (served: ServedRoute) => Middleware {
  return (served) => {
    const tally = settings.daybook.of(nameOfRoute(served.route))
    return async (ctx) => {
      await settings.deliveries.confirm(ctx.req.socket)
      const { revision, values, target }: State = ctx['state']
      const request = {
        served,
        tally,
        revision,
        headers: ctx.headers,
        method: ctx.method,
        client: () => clientOf(ctx.req, settings.trustProxy),
        parameters: { path: values, query: target.query },
        resource: revision.facts.baseUrl + target.path,
        watch: () => goneSignal(ctx.res),
      }
      const answered = await settings.inFlight.add(answering(settings, request))
      const shown = (): Shown => ({
        catalog: revision.catalog,
        facts: revision.facts,
        route: served.route,
        url: request.resource + (target.query === '' ? '' : `?${target.query}`),
      })
      if (answered.delivered !== undefined) settings.deliveries.watch(ctx, answered.delivered)
      send(ctx, negotiate(ctx, answered.reply, shown))
    }
  }
}

function answering(settings: AppSettings, request: RouteRequest): Promise<Answered> {
  return request.served.route.kind === 'paid'
    ? servePaid(settings, request)
    : timed(settings.now, request, () => serveFree(settings, request))
}

function sendPage(ctx: Context, page: Page): void {
  if (page.planned) {
    send(ctx, problem('not_implemented', 'this document is announced and not written yet', { charged: 'no' }))
    return
  }
  const { type, body, etag, headers: more } = page.shown !== undefined && prefersPage(ctx) ? page.shown : page
  const headers = {
    'Content-Type': type,
    ETag: etag,
    'Cache-Control': 'public, max-age=300',
    ...(page.shown === undefined ? {} : { Vary: 'Accept' }),
    ...more,
  }
  if (matches(ctx.get('If-None-Match'), etag)) send(ctx, { status: 304, headers, body: '' })
  else send(ctx, { status: 200, headers, body })
}

/** RFC 9110 §13.1.2: a list of entity tags, compared weakly, or a star. */
function matches(header: string, etag: string): boolean {
  if (header === '') return false
  return header.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

/** A reply, or a file, whose bytes are nobody’s text. */
type Sent = Omit<Reply, 'body'> & { readonly body: string | Buffer }

/** Writes the answer itself: Koa would take the headers one by one, which is a tenth of all the work of a 402. */
function send(ctx: Context, reply: Sent): void {
  const { status, headers, body } = reply
  note(ctx, { reply })
  ctx.respond = false
  const length = status === 204 || status === 304 ? {} : { 'Content-Length': Buffer.byteLength(body) }
  ctx.res.writeHead(status, { ...CORS, ...headers, ...length })
  if (ctx.method === 'HEAD' || body.length === 0) ctx.res.end()
  else ctx.res.end(body)
}
