import { createHash } from 'node:crypto'
import {
  type Catalog,
  type Operation,
  type Route,
  templatesOf,
  type ToolEndpoint,
  variablesOf,
} from '../catalog/catalog.ts'
import { PROXY } from '../catalog/check-context.ts'
import { compileValidator, type RawParameters, type Validator } from '../catalog/validator.ts'
import { documents, type LiveDocument, liveDocuments } from '../documents/all.ts'
import { brandFiles, PAGE_HEADERS } from '../documents/page.ts'
import { type Facts, PAGE_TYPE, placedDocuments } from '../documents/registry.ts'
import { serverCards, serverPages } from '../documents/servers.ts'
import { Failure } from '../errors.ts'
import type { HandlerMap, UntypedHandler } from '../handler.ts'
import type { Json, JsonObject } from '../json.ts'
import { endpointsOf } from '../mcp/server.ts'
import { createToolServers, type ToolServer } from '../mcp/tool-server.ts'
import type { Challenge, Protocol } from '../protocols/protocol.ts'
import {
  ANONYMOUS,
  execute,
  type ExecutionDeps,
  type Operations,
  type Readiness,
  type ServedOperation,
  unreadyFailure,
} from '../purchase/execution.ts'
import { compilePaymentRequired, type PaymentRequired, Preflights } from './payment-required.ts'
import { createProxy, type ProxySettings } from './proxy.ts'

/** Everything derived from one catalog, once: a request takes the current one and finishes on it. */
export interface Revision {
  readonly catalog: Catalog
  readonly routes: readonly ServedRoute[]
  /** Rendered documents and files by path. */
  readonly pages: ReadonlyMap<string, Page>
  /** What is told anew each time, by path. */
  readonly live: ReadonlyMap<string, LiveDocument>
  readonly protocols: readonly Protocol[]
  readonly facts: Facts
  /** The companion MCP servers by name. */
  readonly tools: ReadonlyMap<string, ToolServer>
  readonly preflights: Preflights
  /** Where handlers share a name, the first in the catalog. */
  readonly operations: Operations
}

/** One route with all that answers it. */
export interface ServedRoute extends ServedOperation {
  readonly route: Route
  readonly validate: Validator
  /** Undefined on free routes. */
  readonly paymentRequired: PaymentRequired | undefined
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

export interface RevisionSettings extends OperationSettings {
  readonly protocols: readonly Protocol[]
  readonly baseUrl: string
  /** Bases of the companion servers that have one of their own. */
  readonly mcpUrls: Readonly<Record<string, string>>
  readonly sandbox: boolean
}

export function createRevision(settings: RevisionSettings): Revision {
  const { catalog, protocols, baseUrl, mcpUrls, sandbox } = settings
  const docs = docsPath(catalog)
  const operations = new Map(catalog.operations.map((each) => [each, serveOperation(each, settings)]))
  const servedOf = (operation: Operation): ServedOperation =>
    operations.get(operation) ?? serveOperation(operation, settings)
  const routes = catalog.routes.map((route): ServedRoute => {
    const challenges = route.kind === 'paid' ? challengesOf(route, protocols) : new Map<string, Challenge>()
    return {
      ...servedOf(route.operation),
      route,
      validate: compileValidator(route, catalog.unknownParameters),
      paymentRequired:
        route.kind === 'paid'
          ? compilePaymentRequired(route, [...challenges.values()], { baseUrl, docs })
          : undefined,
      challenges,
    }
  })
  const paid = routes.filter(({ route }) => route.kind === 'paid')
  const isOffered = (name: string): boolean =>
    paid.length === 0 || paid.some(({ challenges }) => challenges.has(name))
  const published = new Map(
    routes.map(({ route, challenges }) => [route.name, challenges.get('x402')?.published]),
  )
  const facts: Facts = {
    baseUrl,
    sandbox,
    available: (operation) => servedOf(operation).readiness === 'ready',
    paymentRequired: (route) => published.get(route.name),
    protocols: protocols.map(({ name }) => name).filter(isOffered),
    mcpServers: endpointsOf(catalog, baseUrl, mcpUrls),
  }
  return {
    catalog,
    routes,
    pages: renderPages(catalog, facts),
    live: new Map(livePlaces(catalog)),
    protocols,
    facts,
    tools: createToolServers({ catalog, facts, protocols, served: servedOf }),
    preflights: new Preflights(baseUrl),
    operations: new Map([...operations.values()].toReversed().map((each) => [each.operation.handler, each])),
  }
}

function challengesOf(route: Route, protocols: readonly Protocol[]): ReadonlyMap<string, Challenge> {
  const named = protocols.flatMap((protocol): [string, Challenge][] => {
    const challenge = protocol.challenge(route)
    return challenge === undefined ? [] : [[protocol.name, challenge]]
  })
  return new Map(named)
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

export interface OperationSettings {
  readonly catalog: Catalog
  readonly handlers: HandlerMap
  readonly proxy: ProxySettings
}

/** An operation with its handler, and whether that can be run. */
export function serveOperation(operation: Operation, settings: OperationSettings): ServedOperation {
  return { operation, ...handlerOf(operation, settings), readiness: readinessOf(operation, settings) }
}

type Made = Pick<ServedOperation, 'handler' | 'preview' | 'check' | 'store'>

function handlerOf(operation: Operation, { handlers, proxy }: OperationSettings): Made {
  const plain = { preview: undefined, check: undefined, store: undefined }
  const { upstream } = operation
  if (operation.handler === PROXY && upstream !== undefined)
    return { handler: createProxy({ ...operation, upstream }, proxy), ...plain }
  const found = Object.hasOwn(handlers, operation.handler) ? handlers[operation.handler] : undefined
  if (found === undefined) return { handler: unwritten, ...plain }
  if (typeof found === 'function') return { handler: found, ...plain }
  if ('prepare' in found) return { ...plain, handler: found.prepare, store: found }
  return { handler: found.run, preview: found.preview, check: found.check, store: undefined }
}

const unwritten: UntypedHandler = () =>
  Promise.reject(new Failure('not_implemented', 'this route is announced and not served yet'))

function readinessOf(operation: Operation, { catalog, handlers, proxy }: OperationSettings): Readiness {
  if (operation.planned) return 'planned'
  const handler = Object.hasOwn(handlers, operation.handler) ? handlers[operation.handler] : undefined
  if (operation.handler !== PROXY && handler === undefined) return 'planned'
  if (typeof handler === 'object' && handler.configured === false) return 'not_configured'
  const sources = operation.sources.flatMap((name) => catalog.sources[name]?.credentials ?? [])
  const needed = [...sources, ...variablesOf(operation.upstream?.credential)]
  return needed.every((name) => proxy.secret(name) !== undefined) ? 'ready' : 'not_configured'
}

/** What came of one route or tool when it was run as its example says. */
export interface Trial {
  readonly path: string
  readonly outcome: { readonly kind: 'answered' } | { readonly kind: 'failed'; readonly fault: unknown }
}

/**
 * Runs the work of every paid route, and of every paid tool without a route, once, one after the other, with the examples
 * of their parameters: nothing is charged, and nothing comes from the cache. What has effects, or needs to know who pays,
 * is left alone; so is what is not `wanted` when its turn comes.
 */
export async function* tryOperations(
  { routes, tools, operations }: Revision,
  workshop: ExecutionDeps,
  wanted: (operation: Operation) => boolean,
): AsyncGenerator<Trial> {
  const paid = routes.filter(({ route }) => route.kind === 'paid' && route.operation.method === 'GET')
  const routed = new Set(routes.map(({ operation }) => operation))
  const bare = [...tools.values()]
    .flatMap((server) => [...server.tools.values()])
    .filter(
      ({ endpoint: { operation, tool } }) =>
        operation.price !== undefined && tool.requires === undefined && !routed.has(operation),
    )
  const trials = [
    ...paid.map(({ route, validate, ...served }) => ({
      path: route.path,
      served,
      validate: () => validate(exampleOf(route)),
    })),
    ...bare.map(({ endpoint, served, check }) => ({
      path: endpoint.path,
      served,
      validate: () => check(exampleArguments(endpoint)),
    })),
  ]
  for (const { path, served, validate } of trials) {
    const { operation, handler, readiness, store } = served
    if (store !== undefined || !wanted(operation)) continue
    const unready = unreadyFailure(readiness)
    const validated = validate()
    try {
      if (unready !== undefined) throw unready
      if (validated.kind === 'invalid') throw new Failure('internal', 'its own examples are refused')
      const { args } = validated
      const work = { operation, handler, args, caller: ANONYMOUS, timeLeft: operation.timeout, operations }
      await execute(workshop, { ...work, reuse: 'never' })
      yield { path, outcome: { kind: 'answered' } }
    } catch (fault) {
      yield { path, outcome: { kind: 'failed', fault } }
    }
  }
}

/** The same for a tool: an example of an object is written as JSON. */
function exampleArguments({ parameters }: ToolEndpoint): JsonObject {
  return Object.fromEntries(
    parameters.flatMap(({ name, type, example }): [string, Json][] => {
      if (example === undefined) return []
      return [[name, type === 'object' ? (JSON.parse(String(example)) as Json) : example]]
    }),
  )
}

/** Every parameter that has an example, as a caller would send it. */
function exampleOf({ path, parameters }: Route): RawParameters {
  const given = parameters.flatMap(({ name, example }): [string, string][] =>
    example === undefined ? [] : [[name, String(example)]],
  )
  const inPath = new Set(templatesOf(path))
  return {
    path: Object.fromEntries(given.filter(([name]) => inPath.has(name))),
    query: new URLSearchParams(given.filter(([name]) => !inPath.has(name))).toString(),
  }
}
