import type { Catalog, Operation, Route } from '../catalog/catalog.ts'
import type { JsonObject } from '../json.ts'

/** What a reader learns about a document before opening it. */
interface Description {
  readonly title: string
  readonly summary: string
  /** Media type, with charset where it has one. */
  readonly type: string
  /** What it is to the service, in the words of RFC 8631; undefined: not listed in the API catalog. */
  readonly rel?: 'service-desc' | 'service-doc' | 'service-meta' | 'status'
  /** Whether the catalog says what it takes; else it is served nowhere and named nowhere. */
  readonly given?: (catalog: Catalog) => boolean
}

const JSON_TYPE = 'application/json; charset=utf-8'
export const PAGE_TYPE = 'text/html; charset=utf-8'
const TEXT_TYPE = 'text/plain; charset=utf-8'

/**
 * Every document by its name under `documents` in the catalog. It stands apart from the functions that render, so
 * that a document can point at the others without importing them.
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
    summary: 'Every endpoint with its price, parameters and an example.',
    type: PAGE_TYPE,
    rel: 'service-doc',
  },
  'docs-md': {
    title: 'Documentation in Markdown',
    summary: 'The same in plain text.',
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
    summary: 'Whom to tell of a weakness (RFC 9116).',
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
    summary: 'How many routes there are, and how often they were called in the last seven days.',
    type: JSON_TYPE,
    rel: 'status',
  },
} as const satisfies Record<string, Description>

export type DocumentName = keyof typeof DOCUMENTS

function isDocumentName(name: string): name is DocumentName {
  return Object.hasOwn(DOCUMENTS, name)
}

/** A document that is served, with the places it is served at. */
export interface PlacedDocument extends Description {
  readonly name: DocumentName
  readonly paths: readonly string[]
  /** Absolute address of the first place. */
  readonly url: string
}

/** The documents the catalog gives a place to, in its order; announced ones and those it says nothing for are left out. */
export function placedDocuments(catalog: Catalog, baseUrl: string): PlacedDocument[] {
  return Object.entries(catalog.documents).flatMap(([name, { paths, planned }]) => {
    const [first] = paths
    if (planned || first === undefined || !isDocumentName(name)) return []
    const description: Description = DOCUMENTS[name]
    if (description.given?.(catalog) === false) return []
    return [{ name, paths, url: baseUrl + first, ...description }]
  })
}

/** Absolute address of one document; undefined when it is not served. */
export function addressOf(name: DocumentName, catalog: Catalog, baseUrl: string): string | undefined {
  return placedDocuments(catalog, baseUrl).find((placed) => placed.name === name)?.url
}

/** What a document says besides the catalog: where the service stands and what it can do today. */
export interface Facts {
  /** Origin without a trailing slash: the only source of absolute URLs. */
  readonly baseUrl: string
  /** Play money on a local chain: every document says so. */
  readonly sandbox: boolean
  /** False: a credential or source is missing, and the route answers 503. */
  readonly available: (operation: Operation) => boolean
  /** The x402 PaymentRequired object of a paid route, as its live 402 carries it; undefined when x402 is not offered. */
  readonly paymentRequired: (route: Route) => JsonObject | undefined
  /** Names of the protocols a payment can be made with now, in order of preference: `x402`, `mpp`. */
  readonly protocols: readonly string[]
  /** Addresses of the companion MCP servers that are served, by their name in the catalog. */
  readonly mcpServers: ReadonlyMap<string, string>
}

/** The text of a document: a pure function, so that it is pinned by a golden file and never drifts. */
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
  /** Headers it is sent with besides those every document has. */
  readonly headers: Headers
  /** What a browser is shown at the same address. */
  readonly page?: Render
}

/** The document of that name, with the media type the directory promises. */
export function defineDocument(name: DocumentName, render: Render, headers: Headers = () => ({})): Document {
  return { name, type: DOCUMENTS[name].type, render, headers }
}

/** A JSON document as it is served and pinned: two spaces, one final newline. */
export function printJson(value: JsonObject): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

/** The same without white space, for what agents load whole: of OpenAPI's bytes two thirds were indentation. */
export function packJson(value: JsonObject): string {
  return `${JSON.stringify(value)}\n`
}
