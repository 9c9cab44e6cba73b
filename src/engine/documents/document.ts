import type { Catalog, Operation, Route } from '../catalog/catalog.ts'
import type { JsonObject } from '../json.ts'

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
}

/**
 * A generated document: a pure function of catalog and facts, so that it is pinned by a golden file and never drifts.
 *
 * Adding one is a new file with such an object and one line in the list of `all.ts`.
 */
export interface Document {
  /** Key under `documents` in the catalog. */
  readonly name: string
  /** Media type, with charset where it has one. */
  readonly type: string
  readonly render: (catalog: Catalog, facts: Facts) => string
}
