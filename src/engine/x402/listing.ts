import type { JsonObject } from '../base/json.ts'

/** The listing data for a facilitator: the members of the 402 that a payment repeats. */
export interface Listing {
  /** Id of the operation. */
  readonly operation: string
  /** Without its URL. */
  readonly resource: JsonObject
  readonly extensions: JsonObject
}
