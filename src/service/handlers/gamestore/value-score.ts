/** What one deal is measured by. */
export interface Bargain {
  /** 0 to 100. */
  readonly discountPercent: number
  readonly positiveReviews: number
  readonly reviews: number
  /** Money saved, in US dollars. */
  readonly savedUsd: number
}

/** Each from 0 to 1. */
export type Components = { readonly discount: number; readonly review: number; readonly savings: number }

export interface ValueScore {
  /** 0 to 100, one decimal. */
  readonly score: number
  /** Four decimals. */
  readonly components: Components
}

/** Changes whenever a score would: buyers who keep scores can tell. */
export const SCORING = {
  formula: '100*(0.40*discount+0.40*wilson_lower_bound+0.20*log_savings)',
  version: '1',
} as const

const WEIGHTS: Components = { discount: 0.4, review: 0.4, savings: 0.2 }
/** The 95 % quantile of the normal distribution, two-sided. */
const Z = 1.96
/** Saving more than this is worth no more. */
const FULL_SAVINGS_USD = 50

/**
 * What a deal is worth looking at: its discount, how sure its reviews are that it is good (the lower end of the Wilson
 * interval, so few reviews count less), and the money saved, on a scale where the first dollars count most.
 *
 * @example
 * scoreValue({ discountPercent: 75, positiveReviews: 1363, reviews: 1623, savedUsd: 15 })
 * // { score: 76.9, components: { discount: 0.75, review: 0.8212, savings: 0.7052 } }
 */
export function scoreValue({ discountPercent, positiveReviews, reviews, savedUsd }: Bargain): ValueScore {
  const discount = discountPercent / 100
  const review = wilsonLowerBound(positiveReviews, reviews)
  const savings = Math.min(1, Math.log(1 + savedUsd) / Math.log(1 + FULL_SAVINGS_USD))
  const sum = WEIGHTS.discount * discount + WEIGHTS.review * review + WEIGHTS.savings * savings
  return {
    score: round(100 * sum, 1),
    components: { discount: round(discount, 4), review: round(review, 4), savings: round(savings, 4) },
  }
}

function wilsonLowerBound(positive: number, count: number): number {
  if (count === 0) return 0
  const share = positive / count
  const square = Z * Z
  const centre = share + square / (2 * count)
  const spread = Z * Math.sqrt((share * (1 - share) + square / (4 * count)) / count)
  // Rounding may leave a hair below zero.
  return Math.max(0, (centre - spread) / (1 + square / count))
}

function round(value: number, decimals: number): number {
  return Number(value.toFixed(decimals))
}
