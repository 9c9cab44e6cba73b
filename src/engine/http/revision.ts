import { createHash } from 'node:crypto'
import type { Catalog, Operation, Route } from '../catalog/catalog.ts'
import { compileValidator, type Validator } from '../catalog/validator.ts'
import { documents, type LiveDocument, liveDocuments } from '../documents/all.ts'
import { PAGE_TYPE, placedDocuments } from '../documents/directory.ts'
import type { Facts } from '../documents/document.ts'
import { brandFiles, PAGE_HEADERS } from '../documents/page.ts'
import { serverCards, serverPages } from '../documents/servers/documents.ts'
import { endpointsOf } from '../mcp/endpoint.ts'
import { openToolboxes, type Toolbox } from '../mcp/toolbox.ts'
import type { Challenge, Protocol } from '../protocols/protocol.ts'
import type { Operations, ServedOperation } from '../purchase/execution.ts'
import { Foresights } from './foresight.ts'
import { serveOperation, type OperationSettings } from './operation.ts'
import { compileUnpaid, type Unpaid } from './unpaid.ts'

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
  readonly tools: ReadonlyMap<string, Toolbox>
  readonly foresights: Foresights
  /** Where handlers share a name, the first in the catalog. */
  readonly operations: Operations
}

/** One route with all that answers it. */
export interface ServedRoute extends ServedOperation {
  readonly route: Route
  readonly validate: Validator
  /** Undefined on free routes. */
  readonly unpaid: Unpaid | undefined
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
      unpaid:
        route.kind === 'paid' ? compileUnpaid(route, [...challenges.values()], { baseUrl, docs }) : undefined,
      challenges,
    }
  })
  const published = new Map(
    routes.map(({ route, challenges }) => [route.name, challenges.get('x402')?.published]),
  )
  const facts: Facts = {
    baseUrl,
    sandbox,
    available: (operation) => servedOf(operation).readiness === 'ready',
    paymentRequired: (route) => published.get(route.name),
    protocols: protocols.map(({ name }) => name),
    mcpServers: endpointsOf(catalog, baseUrl, mcpUrls),
  }
  return {
    catalog,
    routes,
    pages: renderPages(catalog, facts),
    live: new Map(livePlaces(catalog)),
    protocols,
    facts,
    tools: openToolboxes({ catalog, facts, protocols, served: servedOf }),
    foresights: new Foresights(baseUrl),
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
