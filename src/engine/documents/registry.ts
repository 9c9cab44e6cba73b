import type { Catalog, Operation, Route } from '../catalog/catalog.ts'
import type { JsonObject } from '../base/json.ts'
import { escapeInvisible } from './template.ts'

/** Metadata of a document. */
interface Description {
  readonly title: string
  readonly summary: string
  /** Media type, with charset where it has one. */
  readonly type: string
  /** Its relation to the service (RFC 8631); undefined: not listed in the API catalog. */
  readonly rel?: 'service-desc' | 'service-doc' | 'service-meta' | 'status'
  /** Whether the catalog has its content; otherwise it is not served. */
  readonly given?: (catalog: Catalog) => boolean
}

const JSON_TYPE = 'application/json; charset=utf-8'
export const PAGE_TYPE = 'text/html; charset=utf-8'
const TEXT_TYPE = 'text/plain; charset=utf-8'

/**
 * Every document by its name under `documents` in the catalog. Separate from the rendering functions, so that a
 * document can link to others without importing them.
 */
export const DOCUMENTS = {
  index: {
    title: 'Index of endpoints (JSON)',
    summary: 'Every endpoint with its price and parameters, and how to pay.',
    type: JSON_TYPE,
    rel: 'service-meta',
  },
  openapi: {
    title: 'OpenAPI 3.1',
    summary: 'Parameters, answers, errors and prices in full.',
    type: JSON_TYPE,
    rel: 'service-desc',
  },
  llms: {
    title: 'Guide for language models',
    summary: 'How to pay, and what each endpoint is for.',
    type: TEXT_TYPE,
    rel: 'service-doc',
  },
  'agent-card': {
    title: 'Agent card',
    summary: 'Who this is, and its skills, in the layout of A2A.',
    type: JSON_TYPE,
    rel: 'service-meta',
  },
  x402: {
    title: 'x402 manifest',
    summary: 'Addresses of everything that is sold, and how it is paid.',
    type: JSON_TYPE,
    rel: 'service-meta',
  },
  'x402-resources': {
    title: 'x402 resource listing',
    summary: 'What is sold, with the payment requirements of each endpoint.',
    type: JSON_TYPE,
    rel: 'service-meta',
  },
  docs: {
    title: 'Documentation',
    summary: 'How to pay, and every endpoint with its price and its page.',
    type: PAGE_TYPE,
    rel: 'service-doc',
  },
  'docs-md': {
    title: 'Documentation in Markdown',
    summary: 'Every endpoint with its price, parameters and an example, in plain text.',
    type: 'text/markdown; charset=utf-8',
    rel: 'service-doc',
  },
  'docs-errors': {
    title: 'Errors',
    summary: 'Every error by its code: what it means and what to do.',
    type: PAGE_TYPE,
  },
  privacy: {
    title: 'Privacy',
    summary: 'What is kept of a request and a payment, and for how long.',
    type: PAGE_TYPE,
  },
  categories: {
    title: 'Categories',
    summary: 'What is sold and shown, by category.',
    type: JSON_TYPE,
  },
  ard: {
    title: 'Agentic resource discovery',
    summary: 'The API and the agent card, with what people ask them.',
    type: JSON_TYPE,
    rel: 'service-meta',
  },
  'api-catalog': {
    title: 'API catalog',
    summary: 'Links to what describes this API (RFC 9727).',
    type: 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
  },
  robots: { title: 'Rules for crawlers', summary: 'What may be crawled (RFC 9309).', type: TEXT_TYPE },
  sitemap: {
    title: 'Site map',
    summary: 'The pages for people.',
    type: 'application/xml; charset=utf-8',
  },
  'security-txt': {
    title: 'Security contact',
    summary: 'Contact for security reports (RFC 9116).',
    type: TEXT_TYPE,
    given: ({ service: { contact, updated } }) =>
      updated !== undefined && (contact.email ?? contact.url) !== undefined,
  },
  'mcp-registry-auth': {
    title: 'Proof for the MCP registry',
    summary: 'The key that may publish servers of this domain.',
    type: TEXT_TYPE,
    given: ({ service }) => service.mcpRegistryAuth !== undefined,
  },
  health: { title: 'Health', summary: 'Whether the service is up.', type: JSON_TYPE, rel: 'status' },
  'status-json': {
    title: 'Status (JSON)',
    summary: 'Whether every route answers, how fast, and how the outside sources do.',
    type: JSON_TYPE,
  },
  status: {
    title: 'Status',
    summary: 'Whether every route answers, how fast, and how the outside sources do.',
    type: PAGE_TYPE,
  },
  stats: {
    title: 'Figures',
    summary: 'How many routes there are, and what is public of their calls in the last seven days.',
    type: JSON_TYPE,
    rel: 'status',
  },
} as const satisfies Record<string, Description>

export type DocumentName = keyof typeof DOCUMENTS

function isDocumentName(name: string): name is DocumentName {
  return Object.hasOwn(DOCUMENTS, name)
}

/** A served document with its paths. */
export interface PlacedDocument extends Description {
  readonly name: DocumentName
  readonly paths: readonly string[]
  /** Absolute URL of its first path. */
  readonly url: string
}

/** The documents with a path in the catalog, in its order, without planned ones and those without content. */
export function placedDocuments(catalog: Catalog, baseUrl: string): PlacedDocument[] {
  return Object.entries(catalog.documents).flatMap(([name, { paths, planned }]) => {
    const [first] = paths
    if (planned || first === undefined || !isDocumentName(name)) return []
    const description: Description = DOCUMENTS[name]
    if (description.given?.(catalog) === false) return []
    return [{ name, paths, url: baseUrl + first, ...description }]
  })
}

/** Absolute URL of a document; undefined when it is not served. */
export function addressOf(name: DocumentName, catalog: Catalog, baseUrl: string): string | undefined {
  return placedDocuments(catalog, baseUrl).find((placed) => placed.name === name)?.url
}

/** The folder of the pages of routes and MCP servers; undefined when the documentation is not served. */
export function docsFolder({ documents: { docs } }: Catalog): string | undefined {
  const [path] = docs === undefined || docs.planned ? [] : docs.paths
  return path === '/' ? '' : path
}

/**
 * Path of the page of a route, with its Markdown at the same path plus `.md`; undefined when the documentation is
 * not served or the path is taken. A sample is on the page of its paid route.
 */
export function operationPath(catalog: Catalog, { name }: Route): string | undefined {
  const folder = docsFolder(catalog)
  const path = `${folder}/${name}`
  const isTaken = Object.values(catalog.documents).some(({ paths }) => paths.includes(path))
  return folder === undefined || isTaken ? undefined : path
}

/** What documents contain besides the catalog: the address of the service and what it can do now. */
export interface Facts {
  /** Origin and base path without a trailing slash: the only source of absolute URLs. */
  readonly baseUrl: string
  /** Whether it runs on local chains with play money, which every document states. */
  readonly sandbox: boolean
  /** False when a credential or source is missing: the route answers 503. */
  readonly available: (operation: Operation) => boolean
  /** The x402 PaymentRequired object of a paid route, as its live 402 carries it; undefined when x402 is not offered. */
  readonly paymentRequired: (route: Route) => JsonObject | undefined
  /** Names of the protocols that are offered now, in order of preference: `x402`, `mpp`. */
  readonly protocols: readonly string[]
  /** Addresses of the served MCP servers, by their name in the catalog. */
  readonly mcpServers: ReadonlyMap<string, string>
  /** The public keys of signed receipts; undefined: none are signed. */
  readonly didDocument?: JsonObject | undefined
}

/** The text of a document: a pure function, compared with a golden file. */
export type Render = (catalog: Catalog, facts: Facts) => string

type Headers = (catalog: Catalog, facts: Facts) => Readonly<Record<string, string>>

/**
 * A generated document.
 *
 * Adding one is a new file with `defineDocument(name, render)`, its entry in `DOCUMENTS` (the compiler asks for it)
 * and one line in the list of `all.ts`.
 */
export interface Document {
  /** Key under `documents` in the catalog. */
  readonly name: DocumentName
  /** Media type, with charset where it has one. */
  readonly type: string
  readonly render: Render
  /** Its headers besides those of every document. */
  readonly headers: Headers
  /** The page for browsers at the same path. */
  readonly page?: Render
}

/** A document with the media type from `DOCUMENTS`. */
export function defineDocument(name: DocumentName, render: Render, headers: Headers = () => ({})): Document {
  return { name, type: DOCUMENTS[name].type, render, headers }
}

/** Formats a JSON document with two spaces and one final newline. */
export function printJson(value: JsonObject): string {
  return `${escapeInvisible(JSON.stringify(value, undefined, 2))}\n`
}

/** Formats JSON without white space, for documents that agents load completely. */
export function packJson(value: JsonObject): string {
  return `${escapeInvisible(JSON.stringify(value))}\n`
}
