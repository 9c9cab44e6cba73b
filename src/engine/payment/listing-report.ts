/** The report of a facilitator about the listing of an operation in its registry, sent with a settlement. */
export interface ListingResponse {
  readonly status: 'success' | 'processing' | 'rejected'
  readonly reason: string | undefined
}

export interface ListingReport extends ListingResponse {
  /** Host of the facilitator. */
  readonly facilitator: string
  /** Id of the operation. */
  readonly operation: string
  /** Milliseconds since the epoch. */
  readonly at: number
}
