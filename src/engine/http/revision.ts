import {
  type Catalog,
  type Operation,
  type Route,
  usesTestNetworks,
  variablesOf,
} from '../catalog/catalog.ts'
import { PROXY } from '../catalog/check-context.ts'
import { compileValidator, type Validator } from '../catalog/validator.ts'
import { type LiveDocument, liveDocuments } from '../documents/all.ts'
import { exampleAnswer } from '../documents/answer-example.ts'
import { routeTitle } from '../documents/operation-view.ts'
import { type Facts, operationPath, PAGE_TYPE } from '../documents/registry.ts'
import { PAGE_HEADERS } from '../documents/page-frame.ts'
import { renderNotFound } from '../documents/site-pages.ts'
import { Failure } from '../base/errors.ts'
import type { HandlerMap, UntypedHandler } from '../handler.ts'
import { endpointsOf } from '../mcp/server.ts'
import { once } from '../base/once.ts'
import {
  createCommonServer,
  createToolServers,
  type ServedTool,
  type ToolServer,
} from '../mcp/tool-server.ts'
import { challengesOf } from '../payment/endpoint-challenges.ts'
import { exampleAmount } from '../payment/call-price.ts'
import type { Challenge } from '../payment/challenge.ts'
import type { Protocol } from '../payment/protocol.ts'
import type { ReceiptSigner } from '../receipts/receipt-signer.ts'
import { type Operations, type Readiness, type ServedOperation } from '../purchase/execution.ts'
import { compilePaymentRequired, type PaymentRequired, Preflights } from './payment-required.ts'
import { operationPages, type Page, pageOf, type Pages, renderPages } from './rendered-pages.ts'
import { customerFinder, type FindCustomer } from './api-key.ts'
import { credentialReader } from './caller-credential.ts'
import { createCallerProxy, createProxy, createProxyCheck, type ProxySettings } from './proxy.ts'

/** Everything derived from one catalog: a request uses the revision it started with. */
export interface Revision {
  readonly catalog: Catalog
  readonly routes: readonly ServedRoute[]
  /** Rendered at first use; a server renders them in a thread. */
  readonly pages: Pages
  /** The page of a route, or its Markdown version, by path; rendered at first use. */
  readonly operationPage: (path: string) => Page | undefined
  /** Pages that are rendered for each request, by path. */
  readonly live: ReadonlyMap<string, LiveDocument>
  /** The page for unknown paths. */
  readonly notFound: Page
  readonly protocols: readonly Protocol[]
  readonly facts: Facts
  /** The MCP servers by name. */
  readonly tools: ReadonlyMap<string, ToolServer>
  /** The MCP server with the tools of all; undefined when there are none. */
  readonly commonTools: ToolServer | undefined
  readonly preflights: Preflights
  /** By handler name; of several operations, the first in the catalog. */
  readonly operations: Operations
}

/** One route with everything needed to answer it. */
export interface ServedRoute extends ServedOperation {
  readonly route: Route
  readonly validate: Validator
  /** Undefined for free routes. */
  readonly paymentRequired: PaymentRequired | undefined
  /** Challenges by protocol; for a computed price, those of the example. */
  readonly challenges: ReadonlyMap<string, Challenge>
}

export interface RevisionSettings extends OperationSettings {
  readonly protocols: readonly Protocol[]
  readonly baseUrl: string
  /** Base URLs of the MCP servers with a host of their own. */
  readonly mcpUrls: Readonly<Record<string, string>>
  readonly sandbox: boolean
  /** Undefined: no receipts are signed. */
  readonly receipts?: ReceiptSigner | undefined
}

export function createRevision(settings: RevisionSettings): Revision {
  const { catalog, protocols, baseUrl, mcpUrls, sandbox, receipts } = settings
  const findCustomer = catalog.apiKeys === undefined ? undefined : customerFinder(catalog.apiKeys)
  const serve = (operation: Operation): ServedOperation => serveOperation(operation, settings, findCustomer)
  const operations = new Map(catalog.operations.map((each) => [each, serve(each)]))
  const servedOf = (operation: Operation): ServedOperation => operations.get(operation) ?? serve(operation)
  const routes = catalog.routes.map((route) => serveRoute(route, servedOf(route.operation), settings))
  const paid = routes.filter(({ route }) => route.kind === 'paid')
  const isOffered = (name: string): boolean =>
    paid.length === 0 || paid.some(({ challenges }) => challenges.has(name))
  const byName = new Map(routes.map((each) => [each.route.name, each]))
  const facts: Facts = {
    baseUrl,
    sandbox,
    available: (operation) => servedOf(operation).readiness === 'ready',
    paymentRequired: ({ name }) => byName.get(name)?.challenges.get('x402')?.published,
    protocols: protocols.map(({ name }) => name).filter(isOffered),
    mcpServers: endpointsOf(catalog, baseUrl, mcpUrls),
    didDocument: receipts?.didDocument,
  }
  const toolSettings = { catalog, facts, protocols, served: servedOf }
  const tools = createToolServers(toolSettings)
  const pages = once(() => renderPages(catalog, facts))
  const notFound = once(() => pageOf(PAGE_TYPE, renderNotFound(catalog, facts), PAGE_HEADERS))
  return {
    catalog,
    routes,
    get pages() {
      return pages()
    },
    operationPage: operationPages(catalog, facts),
    live: new Map(livePlaces(catalog)),
    get notFound() {
      return notFound()
    },
    protocols,
    facts,
    tools,
    commonTools: createCommonServer(toolSettings, tools),
    preflights: new Preflights(baseUrl),
    operations: new Map([...operations.values()].toReversed().map((each) => [each.operation.handler, each])),
  }
}

/** Compiled at its first request: most routes of a large catalog are not requested between two reloads. */
function serveRoute(
  route: Route,
  served: ServedOperation,
  { catalog, protocols, baseUrl }: RevisionSettings,
): ServedRoute {
  const isPaid = route.kind === 'paid'
  const challengesFor = challengesOf(route, protocols)
  const example = exampleAmount(route.operation)
  return {
    ...served,
    route,
    get validate() {
      return keep(this, 'validate', compileValidator(route, catalog.unknownParameters))
    },
    get paymentRequired(): PaymentRequired | undefined {
      const testnet = usesTestNetworks(catalog.payments)
      const settings = {
        baseUrl,
        docs: docsPath(catalog, route),
        testnet,
        title: routeTitle(route),
        example: exampleAnswer(catalog, route),
      }
      const made = isPaid ? compilePaymentRequired(route, challengesFor, settings) : undefined
      return keep(this, 'paymentRequired', made)
    },
    get challenges(): ReadonlyMap<string, Challenge> {
      const made = isPaid && example !== undefined ? challengesFor(example) : new Map<string, Challenge>()
      return keep(this, 'challenges', made)
    },
  }
}

/** Replaces a getter by the value that it has computed. */
function keep<T>(owner: object, name: string, value: T): T {
  Object.defineProperty(owner, name, { value, enumerable: true })
  return value
}

function livePlaces({ documents: places }: Catalog): [string, LiveDocument][] {
  return liveDocuments.flatMap((name): [string, LiveDocument][] => {
    const place = places[name]
    return place === undefined || place.planned ? [] : place.paths.map((path) => [path, name])
  })
}

/** The documentation link of a 402: the page of its route, otherwise the guide. */
function docsPath(catalog: Catalog, route: Route): string {
  const written = ['llms', 'openapi']
    .map((name) => catalog.documents[name])
    .find((place) => place?.planned === false)
  return operationPath(catalog, route) ?? written?.paths[0] ?? '/'
}

export interface OperationSettings {
  readonly catalog: Catalog
  readonly handlers: HandlerMap
  readonly proxy: ProxySettings
}

/** An operation with its handler, whether it can be run, and who need not pay for it. */
function serveOperation(
  operation: Operation,
  settings: OperationSettings,
  findCustomer: FindCustomer | undefined,
): ServedOperation {
  const made = handlerOf(operation, settings)
  // What a handler stores becomes visible when its payment has settled: without one, nothing would be stored.
  const exemptCallerOf =
    made.store === undefined ? exemptCallerFinder(operation, settings.proxy, findCustomer) : undefined
  return { operation, ...made, readiness: readinessOf(operation, settings), exemptCallerOf }
}

/** Our own keys come first: only a key that is none of ours is shown to the upstream. */
function exemptCallerFinder(
  operation: Operation,
  proxy: ProxySettings,
  findCustomer: FindCustomer | undefined,
): ServedOperation['exemptCallerOf'] {
  const { access, upstream } = operation
  const find = access.apiKeys ? findCustomer : undefined
  const read = access.upstream && upstream !== undefined ? credentialReader(upstream) : undefined
  if (find === undefined && read === undefined) return undefined
  return (headers) => {
    const name = find?.(headers)
    if (name !== undefined) return { kind: 'customer', name }
    const credential = read?.(headers)
    if (credential === undefined || upstream === undefined) return undefined
    const handler = createCallerProxy({ ...operation, upstream }, proxy, credential)
    return { kind: 'caller', handler, digest: credential.digest }
  }
}

type Made = Pick<ServedOperation, 'handler' | 'preview' | 'check' | 'background' | 'store'>

function handlerOf(operation: Operation, { handlers, proxy }: OperationSettings): Made {
  const plain = { preview: undefined, check: undefined, background: undefined, store: undefined }
  const { upstream } = operation
  if (operation.handler === PROXY && upstream !== undefined) {
    const proxied = { ...operation, upstream }
    return { ...plain, handler: createProxy(proxied, proxy), check: createProxyCheck(proxied) }
  }
  const found = Object.hasOwn(handlers, operation.handler) ? handlers[operation.handler] : undefined
  if (found === undefined) return { handler: unwritten, ...plain }
  if (typeof found === 'function') return { handler: found, ...plain }
  if ('prepare' in found) return { ...plain, handler: found.prepare, store: found }
  const { run, preview, check, background } = found
  return { handler: run, preview, check, background, store: undefined }
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

/** Tools without a route. */
export function toolsAlone({ tools, routes }: Pick<Revision, 'tools' | 'routes'>): ServedTool[] {
  const routed = new Set(routes.map(({ operation }) => operation))
  return [...tools.values()]
    .flatMap((server) => [...server.tools.values()])
    .filter(({ served: { operation } }) => !routed.has(operation))
}
