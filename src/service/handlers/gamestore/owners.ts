import type { JsonObject } from 'ratecard/handler'

/** A range with the method that gave it, as answers show it. */
export interface OwnersEstimate {
  readonly low: number
  readonly high: number
  readonly midpoint: number
  readonly method: 'steamspy' | 'review_multiplier'
  readonly confidence: 'medium' | 'low'
}

/** Owners for one review, by the last year it holds for: reviews have become more common over the years. */
const OWNERS_PER_REVIEW: readonly (readonly [number, number])[] = [
  [2013, 80],
  [2016, 70],
  [2017, 60],
  [2019, 45],
  [Infinity, 35],
]
const LOW = 0.6
const HIGH = 1.6

/** The estimate of SteamSpy, from a sample of players. */
export function ownersBySteamSpy({
  low,
  high,
}: {
  readonly low: number
  readonly high: number
}): OwnersEstimate {
  return { low, high, midpoint: Math.round((low + high) / 2), method: 'steamspy', confidence: 'medium' }
}

/**
 * The rule of thumb of the trade: so many owners for each review, by the year of release. Undefined without reviews,
 * without a year, and for a free game, whose owners do not tell players from passers-by.
 *
 * @example
 * ownersByReviews({ reviews: 1000, year: 2018, isFree: false })
 * // { low: 27000, high: 72000, midpoint: 45000, method: 'review_multiplier', confidence: 'low' }
 */
export function ownersByReviews(app: {
  readonly reviews: number
  readonly year: number | null
  readonly isFree: boolean
}): OwnersEstimate | undefined {
  const { reviews, year, isFree } = app
  if (isFree || year === null || reviews === 0) return undefined
  const [, factor] = OWNERS_PER_REVIEW.find(([last]) => year <= last) ?? [0, 0]
  const midpoint = reviews * factor
  return {
    low: Math.round(midpoint * LOW),
    high: Math.round(midpoint * HIGH),
    midpoint,
    method: 'review_multiplier',
    confidence: 'low',
  }
}

/** The better estimate with the others; null without any. */
export function ownersRow(estimates: readonly OwnersEstimate[]): JsonObject | null {
  const [best, ...others] = estimates
  if (best === undefined) return null
  return { ...best, alternatives: others.map((other) => ({ ...other })) }
}
