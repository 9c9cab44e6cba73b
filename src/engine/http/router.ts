import { METHODS } from 'node:http'
import { Router, type MatchResult } from '@koa/router'
import type { Context } from 'koa'
import { colonTemplate } from '../catalog/catalog.ts'
import { renderPaymentPage } from '../documents/payment-page.ts'
import { isJsonObject } from '../json.ts'
import { servePaid, serveFree, type CallDeps, type RouteRequest } from './call.ts'
import { type BackgroundTasks, type Deliveries, note, problem, respond, type Reply } from './reply.ts'
import { livePages, paymentIdOf, paymentState, type LiveSettings } from './live.ts'
import type { Page, Revision, ServedRoute } from './revision.ts'
import { nameOfRoute } from './status.ts'

export interface RouterSettings extends CallDeps, LiveSettings {
  readonly tasks: BackgroundTasks
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
    const { name, path, operation } = served.route
    router.register(colonTemplate(path), [operation.method], serveRoute(settings, revision, served), { name })
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
  const { deliveries, tasks } = settings
  const isPaid = route.kind === 'paid'
  const notes = { place: route.path, price: isPaid ? route.operation.price : undefined }
  const counters = settings.usageStore.of(nameOfRoute(route))
  return async (ctx) => {
    note(ctx, notes)
    const confirmed = deliveries.confirm(ctx.req.socket)
    if (confirmed !== undefined) await confirmed
    const parameters = { path: ctx.params, query: ctx.querystring }
    const resource = revision.facts.baseUrl + ctx.path
    const request: RouteRequest = { ctx, served, counters, revision, parameters, resource }
    const answering = isPaid ? servePaid(settings, request) : serveFree(settings, request)
    const { reply, delivered } = answering instanceof Promise ? await tasks.add(answering) : answering
    if (delivered !== undefined) deliveries.watch(ctx, delivered)
    respond(ctx, reply.status === 402 ? negotiate(request, reply) : reply)
  }
}

/** A 402 as its reader wants it: a page for a browser, JSON for everyone else, the same headers for both. */
function negotiate({ ctx, served: { route }, revision, resource }: RouteRequest, reply: Reply): Reply {
  const problem: unknown = prefersPage(ctx) ? JSON.parse(String(reply.body)) : undefined
  const vary = 'Accept'
  // A copy costs as much as finding the route: the usual 402 is made with this header.
  if (!isJsonObject(problem)) return reply.vary === vary ? reply : { ...reply, vary }
  const { catalog, facts } = revision
  const { html, policy } = renderPaymentPage({ catalog, facts, route, url: resource + ctx.search, problem })
  return {
    ...reply,
    vary,
    headers: {
      ...reply.headers,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy,
      'X-Content-Type-Options': 'nosniff',
    },
    body: html,
  }
}

/** Whether a browser asks: a client that accepts JSON equally well gets JSON. */
function prefersPage(ctx: Context): boolean {
  if (!ctx.get('Accept').includes('text/html')) return false
  return ctx.accepts('application/problem+json', 'application/json', 'text/html') === 'text/html'
}

type Layer = Router['stack'][number]

/** Templates whose segments are fixed and variable at the same positions. */
interface Shape {
  readonly isVariable: readonly boolean[]
  readonly layers: Map<string, Layer[]>
}

/**
 * A router whose lookups do not get slower with more routes. Exact paths are found in a map and win over templates;
 * templates are found by their fixed segments, those with the earlier fixed segment first.
 */
export class IndexedRouter extends Router {
  readonly #exact = new Map<string, Layer[]>()
  /** By number of segments. */
  readonly #shapes = new Map<number, Shape[]>()
  /** Middleware and regular expressions: tested one by one. */
  readonly #others: Layer[] = []

  constructor() {
    // With every method known, a method that a path does not have is always 405.
    super({ sensitive: true, strict: true, methods: [...METHODS] })
  }

  override register(...args: Parameters<Router['register']>): ReturnType<Router['register']> {
    const registered = super.register(...args)
    if (!(registered instanceof Router)) this.#index(registered)
    return registered
  }

  override match(path: string, method: string): MatchResult {
    const exact = this.#exact.get(path) ?? []
    const found = exact.some(({ methods }) => methods.includes(method))
      ? exact
      : [...exact, ...this.#templated(path)]
    const others = this.#others.filter((layer) => layer.match(path))
    const all = [...others, ...found]
    const pathAndMethod = all.filter(({ methods }) => methods.length === 0 || methods.includes(method))
    return { path: all, pathAndMethod, route: pathAndMethod.some(({ methods }) => methods.length > 0) }
  }

  #index(layer: Layer): void {
    const { path, methods } = layer
    if (typeof path !== 'string' || methods.length === 0 || /[*{}()[\]+?!\\"]/.test(path))
      this.#others.push(layer)
    else if (!path.includes(':')) append(this.#exact, path, layer)
    else {
      const segments = path.split('/')
      const isVariable = segments.map((segment) => segment.includes(':'))
      const shapes = this.#shapes.get(segments.length) ?? []
      this.#shapes.set(segments.length, shapes)
      let shape = shapes.find((each) =>
        each.isVariable.every((variable, index) => variable === isVariable[index]),
      )
      if (shape === undefined) {
        shape = { isVariable, layers: new Map() }
        shapes.push(shape)
        shapes.sort((one, other) => rank(one) - rank(other))
      }
      append(shape.layers, keyOf(segments, shape), layer)
      // `{id}.pdf` is more exact than `{id}`.
      shape.layers.get(keyOf(segments, shape))?.sort((one, other) => suffixes(other) - suffixes(one))
    }
  }

  #templated(path: string): Layer[] {
    const segments = path.split('/')
    return (this.#shapes.get(segments.length) ?? [])
      .flatMap((shape) => shape.layers.get(keyOf(segments, shape)) ?? [])
      .filter((layer) => layer.match(path))
  }
}

function append(map: Map<string, Layer[]>, key: string, layer: Layer): void {
  const layers = map.get(key)
  if (layers === undefined) map.set(key, [layer])
  else layers.push(layer)
}

function keyOf(segments: readonly string[], { isVariable }: Shape): string {
  return segments.map((segment, index) => (isVariable[index] ? ':' : segment)).join('/')
}

/** Characters of the path that stand behind its variables. */
function suffixes({ path }: Layer): number {
  return String(path).replace(/[^/]*:\w+/g, '').length - String(path).replace(/[^/]*:[^/]*/g, '').length
}

/** The path that the router has matched, as catalogs write it. */
export function templateOf(ctx: Context): string {
  const matched: readonly Layer[] | undefined = ctx['matched']
  return String(matched?.[0]?.path).replace(/:(\w+)/g, '{$1}')
}

/** Lower where the first difference is a fixed segment. */
function rank({ isVariable }: Shape): number {
  return isVariable.reduce((sum, variable) => sum * 2 + Number(variable), 0)
}
