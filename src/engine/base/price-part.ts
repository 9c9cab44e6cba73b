/** A part of the price of one call. A type alias, so that it counts as JSON. */
export type PricePart = {
  /**
   * `base`, the name of a parameter, a measure or counter and what it counts, or `min`, `max`, `ceiling` or `if_missing`
   * when that decides.
   */
  readonly part: string
  readonly value?: string
  readonly count?: number
  readonly units?: number
  /** USD. */
  readonly amount: string
}
