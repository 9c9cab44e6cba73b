import type { Context } from 'koa'
import { colonTemplate } from '../catalog/catalog.ts'
import { withMetrics } from '../tally/tally.ts'
import { note } from './access-log.ts'
import { clientOf } from './client.ts'
import type { Deliveries } from './delivery.ts'
import { nameOfRoute } from './figures.ts'
import { serveFree } from './free.ts'
import { goneSignal } from './gone.ts'
import type { InFlight } from './in-flight.ts'
import { livePages, type LiveSettings } from './live.ts'
import { negotiate, prefersPage, type Shown } from './negotiate.ts'
import { servePaid, type PaidDeps } from './paid.ts'
import { paymentIdOf, paymentState } from './payment-state.ts'
import { problem, respond } from './reply.ts'
import type { RouteRequest } from './request.ts'
import type { Page, Revision, ServedRoute } from './revision.ts'
import { IndexedRouter } from './indexed-router.ts'

export interface RouterSettings extends PaidDeps, LiveSettings {
  readonly trustProxy: boolean
  readonly inFlight: InFlight
  readonly deliveries: Deliveries
}

/** Everything that one revision serves over HTTP, each path a named layer of one router. */
export function createRouter(settings: RouterSettings, revision: Revision): IndexedRouter {
  const router = new IndexedRouter()
  const live = livePages(settings, revision)
  for (const [path, name] of revision.live)
    router.get(name, path, async (ctx) => {
      note(ctx, { place: path })
      respond(ctx, await live(name))
    })
  for (const [path, page] of revision.pages) router.get(path, path, servePage(path, page))
  router.get('payment', '/payments/:id', async (ctx, next) => {
    const id = paymentIdOf(ctx.path)
    if (id === undefined) return next()
    note(ctx, { place: '/payments/{id}' })
    respond(ctx, await paymentState(settings.purchases.ledger, id))
  })
  for (const served of revision.routes) {
    const { name, path } = served.route
    router.get(name, colonTemplate(path), serveRoute(settings, revision, served))
  }
  return router
}

function servePage(place: string, page: Page): (ctx: Context) => void {
  return (ctx) => {
    note(ctx, { place })
    if (page.planned) {
      const detail = 'this document is announced and not written yet'
      return respond(ctx, problem('not_implemented', detail, { charged: 'no' }))
    }
    const { type, body, etag, headers } = page.shown !== undefined && prefersPage(ctx) ? page.shown : page
    ctx.status = 200
    ctx.set({ 'Content-Type': type, ETag: etag, 'Cache-Control': 'public, max-age=300', ...headers })
    if (page.shown !== undefined) ctx.vary('Accept')
    if (matches(ctx.get('If-None-Match'), etag)) ctx.status = 304
    else ctx.body = body
  }
}

/**
 * RFC 9110 §13.1.2: a list of entity tags, compared weakly, or a star. Not `ctx.fresh`: fetch in Node.js and browsers adds
 * `Cache-Control: no-cache` to a request with If-None-Match, which `ctx.fresh` takes for a reload.
 */
function matches(header: string, etag: string): boolean {
  return header.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

function serveRoute(
  settings: RouterSettings,
  revision: Revision,
  served: ServedRoute,
): (ctx: Context & { params: Record<string, string> }) => Promise<void> {
  const { route } = served
  const { now, deliveries, inFlight, trustProxy } = settings
  const isPaid = route.kind === 'paid'
  const notes = { place: route.path, price: isPaid ? route.operation.price : undefined }
  const tally = settings.daybook.of(nameOfRoute(route))
  return async (ctx) => {
    note(ctx, notes)
    await deliveries.confirm(ctx.req.socket)
    const request: RouteRequest = {
      served,
      tally,
      revision,
      headers: ctx.headers,
      method: ctx.method,
      client: () => clientOf(ctx.req, trustProxy),
      parameters: { path: ctx.params, query: ctx.querystring },
      resource: revision.facts.baseUrl + ctx.path,
      watch: () => goneSignal(ctx.res),
    }
    const answered = await inFlight.add(
      isPaid ? servePaid(settings, request) : withMetrics(now, request, () => serveFree(settings, request)),
    )
    const shown = (): Shown => ({
      catalog: revision.catalog,
      facts: revision.facts,
      route,
      url: request.resource + ctx.search,
    })
    if (answered.delivered !== undefined) deliveries.watch(ctx, answered.delivered)
    respond(ctx, negotiate(ctx, answered.reply, shown))
  }
}
