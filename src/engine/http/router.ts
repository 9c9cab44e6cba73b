import { METHODS } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip, type BrotliOptions } from 'node:zlib'
import { Router, type MatchResult } from '@koa/router'
import type { Context, Middleware } from 'koa'
import { colonTemplate } from '../catalog/catalog.ts'
import { RESERVED } from '../catalog/check-paths.ts'
import { fixedPrice } from '../protocols/protocol.ts'
import { renderPaymentPage } from '../documents/payment-page.ts'
import { docsFolder } from '../documents/registry.ts'
import { isJsonObject } from '../json.ts'
import { servePaid, serveFree, type CallDeps, type RouteRequest } from './call.ts'
import { type BackgroundTasks, type Deliveries, note, problem, respond, type Reply } from './reply.ts'
import { livePages, paymentPathOf, readPayment, type LiveSettings } from './live-pages.ts'
import type { Page, Pages } from './pages.ts'
import type { Revision, ServedRoute } from './revision.ts'
import { nameOfRoute } from './status.ts'

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
      respond(ctx, await readPayment(settings.purchases.ledger, asked))
    })
  await inTurn(revision.routes, (served) => {
    const { name, path, operation } = served.route
    router.register(colonTemplate(path), [operation.method], serveRoute(settings, revision, served), { name })
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

/** Size of a body that fits into one packet. */
const SMALL = 1_024
const COMPRESSIBLE = /^text\/|[/+](?:json|xml|javascript)\b/
const ENCODERS = {
  br: (body: Buffer): Promise<Buffer> =>
    brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: promisify<Buffer, Buffer>(gzip),
}
const brotli = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress)
/** The default of 11 takes seconds for a megabyte. */
const BROTLI_QUALITY = 5

/** Compresses documents (RFC 9110 §8.4), each page once for all its readers. */
function compressDocuments(): Middleware {
  const compressed = new WeakMap<Buffer, Map<string, Promise<Buffer>>>()
  return async (ctx, next) => {
    ctx.vary('Accept-Encoding')
    await next()
    const body: unknown = ctx.body
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    if (!Buffer.isBuffer(bytes) || bytes.length < SMALL || !COMPRESSIBLE.test(ctx.type)) return
    const encoding = ctx.acceptsEncodings('br', 'gzip', 'identity')
    if (encoding !== 'br' && encoding !== 'gzip') return
    const made = compressed.get(bytes) ?? new Map<string, Promise<Buffer>>()
    compressed.set(bytes, made)
    const compressing = made.get(encoding) ?? ENCODERS[encoding](bytes)
    made.set(encoding, compressing)
    ctx.body = await compressing
    ctx.set('Content-Encoding', encoding)
  }
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
 * RFC 9110 §13.1.2: a list of entity tags, compared weakly (some caches drop the W/), or a star. Not `ctx.fresh`: fetch in Node.js and browsers adds
 * `Cache-Control: no-cache` to a request with If-None-Match, which `ctx.fresh` takes for a reload.
 */
function matches(header: string, etag: string): boolean {
  const opaque = (tag: string): string => tag.trim().replace(/^W\//, '')
  return header.split(',').some((tag) => tag.trim() === '*' || opaque(tag) === opaque(etag))
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
    const confirmed = deliveries.confirm(ctx.req.socket)
    if (confirmed !== undefined) await confirmed
    const parameters = { path: ctx.params, query: ctx.querystring }
    const resource = revision.facts.baseUrl + ctx.path
    const request: RouteRequest = { ctx, served, counters, revision, parameters, resource }
    const answering = isPaid ? servePaid(settings, request) : serveFree(settings, request)
    const { reply, delivered, recorded } =
      answering instanceof Promise ? await tasks.add(answering) : answering
    if (delivered !== undefined) deliveries.watch(ctx, delivered, recorded)
    respond(ctx, reply.status === 402 ? negotiate(request, reply) : reply)
  }
}

/** Renders a 402 as a page for browsers and as JSON otherwise, with the same headers. */
function negotiate({ ctx, served: { route }, revision, resource }: RouteRequest, reply: Reply): Reply {
  const problem: unknown = prefersPage(ctx) ? JSON.parse(String(reply.body)) : undefined
  const vary = 'Accept'
  // A copy costs as much as routing: the usual 402 is created with this header.
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

/** Whether the client prefers a page: one that accepts JSON equally well gets JSON. */
export function prefersPage(ctx: Context): boolean {
  if (!ctx.get('Accept').includes('text/html')) return false
  return ctx.accepts('application/problem+json', 'application/json', 'text/html') === 'text/html'
}

type Layer = Router['stack'][number]

/** Templates with fixed and variable segments at the same positions. */
interface Shape {
  readonly isVariable: readonly boolean[]
  readonly layers: Map<string, Layer[]>
}

/**
 * A router whose lookup time does not grow with the number of routes. Exact paths are found in a map and take
 * precedence over templates; templates are found by their fixed segments, the one with the earlier fixed segment
 * first.
 */
export class IndexedRouter extends Router {
  readonly #exact = new Map<string, Layer[]>()
  /** By number of segments. */
  readonly #shapes = new Map<number, Shape[]>()
  /** Middleware and regular expressions, which are tested one by one. */
  readonly #others: Layer[] = []

  constructor() {
    // With every method known, an unsupported method of a path is always answered 405.
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

/** Length of the fixed suffixes after variables. */
function suffixes({ path }: Layer): number {
  return String(path).replace(/[^/]*:\w+/g, '').length - String(path).replace(/[^/]*:[^/]*/g, '').length
}

/** The path that the router has matched, as written in the catalog. */
export function templateOf(ctx: Context): string {
  const matched: readonly Layer[] | undefined = ctx['matched']
  return String(matched?.[0]?.path).replace(/:(\w+)/g, '{$1}')
}

/** Lower when the first difference is a fixed segment. */
function rank({ isVariable }: Shape): number {
  return isVariable.reduce((sum, variable) => sum * 2 + Number(variable), 0)
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
