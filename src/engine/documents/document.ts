import type { Catalog, Operation, Route } from '../catalog/catalog.ts'
import type { JsonObject } from '../json.ts'
import { DIRECTORY, type DocumentName } from './directory.ts'

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
 * Adding one is a new file with `defineDocument(name, render)`, its entry in `directory.ts` (the compiler asks for it)
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
  return { name, type: DIRECTORY[name].type, render, headers }
}

/** A JSON document as it is served and pinned: two spaces, one final newline. */
export function printJson(value: JsonObject): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

/** The same without white space, for what agents load whole: of OpenAPI's bytes two thirds were indentation. */
export function packJson(value: JsonObject): string {
  return `${JSON.stringify(value)}\n`
}
