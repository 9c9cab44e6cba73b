import { createHash } from 'node:crypto'
import type { Middleware } from 'koa'
import type { Catalog, Operation, Route } from '../catalog/catalog.ts'
import { PROXY } from '../catalog/subject.ts'
import { documents, liveDocuments, type LiveDocument } from '../documents/all.ts'
import { brandFiles } from '../documents/brand.ts'
import { PAGE_TYPE, placedDocuments } from '../documents/directory.ts'
import type { Facts } from '../documents/document.ts'
import { PAGE_HEADERS } from '../documents/page.ts'
import { serverCards, serverPages } from '../documents/servers/documents.ts'
import { Failure } from '../errors.ts'
import type { HandlerMap, UntypedCheck, UntypedHandler } from '../handler.ts'
import type { Store } from '../paywall/paywall.ts'
import type { Challenge, Protocol } from '../protocols/protocol.ts'
import type { Preview } from './envelope.ts'
import { Foresights } from './foresight.ts'
import { compileValidator, type Validator } from './parameters.ts'
import { createProxy, type ProxySettings } from './proxy.ts'
import type { Readiness } from './readiness.ts'
import { createTable, type RouteTable } from './table.ts'
import { compileUnpaid, type Unpaid } from './unpaid.ts'

/** Everything derived from one catalog, once: a request takes the current one and finishes on it. */
export interface Revision {
  readonly catalog: Catalog
  readonly table: RouteTable<ServedRoute>
  /** Rendered documents and files by path. */
  readonly pages: ReadonlyMap<string, Page>
  /** What is told anew each time, by path. */
  readonly live: ReadonlyMap<string, LiveDocument>
  readonly protocols: readonly Protocol[]
  readonly facts: Facts
  readonly foresights: Foresights
  /** By the name of their handlers, for handlers that ask others: a face of each, the first in the catalog. */
  readonly operations: ReadonlyMap<string, ServedRoute>
}

/** One route with all that answers it. */
export interface ServedRoute {
  readonly route: Route
  readonly validate: Validator
  readonly handler: UntypedHandler
  readonly preview: Preview | undefined
  /** Of work that is paid for first. */
  readonly check: UntypedCheck | undefined
  /** Of a handler that stores something. */
  readonly store: Store | undefined
  /** Undefined on free routes. */
  readonly unpaid: Unpaid | undefined
  readonly readiness: Readiness
  /** By the name of their protocol. */
  readonly challenges: ReadonlyMap<string, Challenge>
}

export interface Page {
  readonly type: string
  readonly body: string | Buffer
  readonly etag: string
  readonly planned: boolean
  /** Besides those every page has. */
  readonly headers: Readonly<Record<string, string>>
  /** What a browser is shown in its place. */
  readonly shown?: Page
}

export interface RevisionSettings {
  readonly catalog: Catalog
  readonly handlers: HandlerMap
  readonly protocols: readonly Protocol[]
  readonly baseUrl: string
  readonly sandbox: boolean
  readonly proxy: ProxySettings
  readonly middleware: (served: ServedRoute) => Middleware
}

export function createRevision(settings: RevisionSettings): Revision {
  const { catalog, protocols, baseUrl, sandbox } = settings
  const docs = docsPath(catalog)
  const served = catalog.routes.map((route): ServedRoute => {
    const challenges = route.kind === 'paid' ? challengesOf(route, protocols) : new Map<string, Challenge>()
    return {
      route,
      validate: compileValidator(route),
      ...handlerOf(route.operation, settings),
      unpaid:
        route.kind === 'paid' ? compileUnpaid(route, [...challenges.values()], { baseUrl, docs }) : undefined,
      readiness: readinessOf(route.operation, settings),
      challenges,
    }
  })
  const published = new Map(
    served.map(({ route, challenges }) => [route.name, challenges.get('x402')?.published]),
  )
  const facts: Facts = {
    baseUrl,
    sandbox,
    available: (operation) => readinessOf(operation, settings) === 'ready',
    paymentRequired: (route) => published.get(route.name),
    protocols: protocols.map(({ name }) => name),
    mcpServers: new Map(),
  }
  return {
    catalog,
    table: createTable(served, settings.middleware),
    pages: renderPages(catalog, facts),
    live: new Map(livePlaces(catalog)),
    protocols,
    facts,
    foresights: new Foresights(baseUrl),
    operations: new Map(served.toReversed().map((each) => [each.route.operation.handler, each])),
  }
}

function challengesOf(route: Route, protocols: readonly Protocol[]): ReadonlyMap<string, Challenge> {
  const named = protocols.flatMap((protocol): [string, Challenge][] => {
    const challenge = protocol.challenge(route)
    return challenge === undefined ? [] : [[protocol.name, challenge]]
  })
  return new Map(named)
}

type Made = Pick<ServedRoute, 'handler' | 'preview' | 'check' | 'store'>

function handlerOf(operation: Operation, { handlers, proxy }: RevisionSettings): Made {
  const plain = { preview: undefined, check: undefined, store: undefined }
  if (operation.handler === PROXY && operation.upstream !== undefined)
    return { handler: createProxy(operation.upstream, proxy), ...plain }
  const found = Object.hasOwn(handlers, operation.handler) ? handlers[operation.handler] : undefined
  if (found === undefined) return { handler: unwritten, ...plain }
  if (typeof found === 'function') return { handler: found, ...plain }
  if ('prepare' in found) return { ...plain, handler: found.prepare, store: found }
  return { handler: found.run, preview: found.preview, check: found.check, store: undefined }
}

const unwritten: UntypedHandler = () =>
  Promise.reject(new Failure('not_implemented', 'this route is announced and not served yet'))

function readinessOf(operation: Operation, { catalog, handlers, proxy }: RevisionSettings): Readiness {
  if (operation.planned) return 'planned'
  const handler = Object.hasOwn(handlers, operation.handler) ? handlers[operation.handler] : undefined
  if (operation.handler !== PROXY && handler === undefined) return 'planned'
  if (typeof handler === 'object' && handler.configured === false) return 'not_configured'
  const sources = operation.sources.flatMap((name) => catalog.sources[name]?.credentials ?? [])
  const own = operation.upstream?.credential?.env
  const needed = own === undefined ? sources : [...sources, own]
  return needed.every((name) => proxy.secret(name) !== undefined) ? 'ready' : 'not_configured'
}

/** Documents, files, and how the pages look; a catalog that has something else at such a path goes first. */
function renderPages(catalog: Catalog, facts: Facts): ReadonlyMap<string, Page> {
  const own = [...renderDocuments(catalog, facts), ...renderFiles(catalog)]
  const taken = new Set([...own.map(([path]) => path), ...catalog.routes.map(({ path }) => path)])
  const brand = brandFiles.filter(({ path }) => !taken.has(path))
  const servers = [...serverPages(catalog, facts), ...serverCards(catalog, facts)]
  return new Map([
    ...own,
    ...servers
      .filter(({ path }) => !taken.has(path))
      .map(({ path, type, text, headers }): [string, Page] => [path, pageOf(type, text, headers)]),
    ...brand.map(({ path, type, bytes }): [string, Page] => [path, pageOf(type, bytes, {})]),
  ])
}

function renderDocuments(catalog: Catalog, facts: Facts): [string, Page][] {
  const placed = placedDocuments(catalog, facts.baseUrl).flatMap(({ name, paths }): [string, Page][] => {
    const document = documents.find((each) => each.name === name)
    if (document === undefined) return []
    const { type, render, page } = document
    const headers = document.headers(catalog, facts)
    const shown =
      page === undefined
        ? {}
        : { shown: pageOf(PAGE_TYPE, page(catalog, facts), { ...headers, ...PAGE_HEADERS }) }
    const served = { ...pageOf(type, render(catalog, facts), headers), ...shown }
    return paths.map((path) => [path, served])
  })
  const announced = Object.values(catalog.documents).flatMap(({ paths, planned }) => (planned ? paths : []))
  return [...placed, ...announced.map((path): [string, Page] => [path, ANNOUNCED])]
}

const ANNOUNCED: Page = { type: '', body: '', etag: '', planned: true, headers: {} }

function livePlaces({ documents: places }: Catalog): [string, LiveDocument][] {
  return liveDocuments.flatMap((name): [string, LiveDocument][] => {
    const place = places[name]
    return place === undefined || place.planned ? [] : place.paths.map((path) => [path, name])
  })
}

function renderFiles({ files }: Catalog): [string, Page][] {
  return files.map(({ path, type, base64, planned }) => [
    path,
    { ...pageOf(type, Buffer.from(base64, 'base64'), {}), planned },
  ])
}

function pageOf(type: string, body: string | Buffer, headers: Page['headers']): Page {
  return { type, body, etag: etagOf(body), planned: false, headers }
}

function etagOf(body: string | Buffer): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`
}

/** Where a reader of a 402 is sent: the pages when there are any, else the plain guide. */
function docsPath({ documents: places }: Catalog): string {
  const written = ['docs', 'llms', 'openapi']
    .map((name) => places[name])
    .find((place) => place?.planned === false)
  return written?.paths[0] ?? '/'
}
