import { setImmediate } from 'node:timers/promises'
import type { Context } from 'koa'
import { colonTemplate } from '../catalog/catalog.ts'
import { RESERVED } from '../catalog/rules/check-paths.ts'
import { fixedPrice } from '../payment/call-price.ts'
import { docsFolder } from '../documents/registry.ts'
import { serveAction, servePaid, serveFree, type CallDeps, type RouteRequest } from './call.ts'
import { note, respond } from './reply.ts'
import { type Deliveries } from './deliveries.ts'
import { type BackgroundTasks } from './background-tasks.ts'
import { livePages, paymentPathOf, readPayment, type LiveSettings } from './live-pages.ts'
import type { Pages } from './rendered-pages.ts'
import type { Revision, ServedRoute } from './revision.ts'
import { nameOfRoute } from './status.ts'
import { compressDocuments } from './compress.ts'
import { servePage } from './conditional.ts'
import { negotiate } from './payment-required-page.ts'
import { IndexedRouter } from './indexed-router.ts'

export interface RouterSettings extends CallDeps, LiveSettings {
  readonly tasks: BackgroundTasks
  readonly deliveries: Deliveries
}

/** The router of one revision, with a named layer for each path. */
export async function createRouter(
  settings: RouterSettings,
  revision: Revision,
  pages: Pages,
): Promise<IndexedRouter> {
  const router = new IndexedRouter()
  const live = livePages(settings, revision)
  // Documents only: a 402 is too small, and paid answers are sent byte for byte.
  const compressed = compressDocuments()
  for (const [path, name] of revision.live)
    router.get(name, path, compressed, async (ctx) => {
      note(ctx, { place: path })
      respond(ctx, await live(name))
    })
  for (const [path, page] of pages) router.get(path, path, compressed, servePage(path, page))
  const folder = docsFolder(revision.catalog)
  if (folder !== undefined)
    router.get('operation', `${folder}/:operation`, compressed, async (ctx, next) => {
      const page = revision.operationPage(ctx.path)
      if (page === undefined) return next()
      servePage(`${folder}/{operation}`, page)(ctx)
    })
  for (const path of RESERVED)
    router.get(path, colonTemplate(path), async (ctx, next) => {
      const asked = paymentPathOf(ctx.path)
      if (asked === undefined) return next()
      note(ctx, { place: path })
      const { ledger, receipts } = settings.purchases
      respond(ctx, await readPayment(ledger, asked, receipts))
    })
  await inTurn(revision.routes, (served) => {
    const { name, path, operation } = served.route
    router.register(colonTemplate(path), [operation.method], serveRoute(settings, revision, served), { name })
  })
  if (revision.protocols.some(({ takesActions }) => takesActions === true))
    await inTurn(revision.routes, (served) => {
      const { kind, path } = served.route
      if (kind !== 'paid' || router.match(colonTemplate(path), 'GET').route) return
      router.get(colonTemplate(path), serveActions(settings, revision, served))
    })
  return router
}

/** Longest time for which other requests wait. */
const TURN_MS = 10

/** Calls `act` for each item, and lets other requests proceed in between. */
async function inTurn<T>(items: Iterable<T>, act: (item: T) => void): Promise<void> {
  let began = performance.now()
  for (const item of items) {
    act(item)
    if (performance.now() - began < TURN_MS) continue
    await setImmediate()
    began = performance.now()
  }
}

/** What clients of channels send by GET, whatever the method of the route. */
function serveActions(
  { tasks, usageStore }: RouterSettings,
  revision: Revision,
  served: ServedRoute,
): (ctx: Context & { params: Record<string, string> }) => Promise<void> {
  const counters = usageStore.of(nameOfRoute(served.route))
  return async (ctx) => {
    note(ctx, { place: served.route.path })
    const parameters = { path: ctx.params, query: ctx.querystring }
    const resource = revision.facts.baseUrl + ctx.path
    const request: RouteRequest = { ctx, served, counters, revision, parameters, resource }
    const { reply } = await tasks.add(serveAction(request))
    respond(ctx, reply)
  }
}

function serveRoute(
  settings: RouterSettings,
  revision: Revision,
  served: ServedRoute,
): (ctx: Context & { params: Record<string, string> }) => Promise<void> {
  const { route } = served
  const { deliveries, tasks } = settings
  const isPaid = route.kind === 'paid'
  const notes = { place: route.path, price: isPaid ? fixedPrice(route) : undefined }
  const counters = settings.usageStore.of(nameOfRoute(route))
  return async (ctx) => {
    note(ctx, notes)
    deliveries.confirm(ctx.req.socket)
    const parameters = { path: ctx.params, query: ctx.querystring }
    const resource = revision.facts.baseUrl + ctx.path
    const request: RouteRequest = { ctx, served, counters, revision, parameters, resource }
    const answering = isPaid ? servePaid(settings, request) : serveFree(settings, request)
    const { reply, delivered, recorded } =
      answering instanceof Promise ? await tasks.add(answering) : answering
    if (delivered !== undefined) await deliveries.watch(ctx, delivered, recorded)
    respond(ctx, isPaid && reply.status === 402 ? negotiate(request, reply) : reply)
  }
}
