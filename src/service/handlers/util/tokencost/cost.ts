/** USD times 10^12: what a whole number of tokens costs at a price with six decimals per million. */
export type Cost = bigint

/** Exact: prices are published with at most six decimals, which floats do not represent. */
export function costOf(tokens: number, usdPerMillion: number): Cost {
  return BigInt(tokens) * BigInt(Math.round(usdPerMillion * 1e6))
}

/**
 * USD as decimal text, rounded half up to ten places, without trailing zeros.
 *
 * @example
 * costText(costOf(500, 15)) // '0.0075'
 */
export function costText(cost: Cost): string {
  const digits = ((cost + 50n) / 100n).toString().padStart(11, '0')
  return `${digits.slice(0, -10)}.${digits.slice(-10)}`.replace(/\.?0+$/, '')
}
