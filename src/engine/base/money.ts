/**
 * Money is a whole number of micro-dollars: the smallest step of catalog prices, and one atomic unit of a six-
 * decimal stablecoin. No amount is ever a float.
 */
declare const micros: unique symbol
export type Micros = bigint & { readonly [micros]: true }

export const PRICE_DECIMALS = 6

export type PriceFault = 'price_not_decimal' | 'price_too_precise' | 'price_not_positive' | 'price_too_large'

export type ParsedPrice =
  { readonly kind: 'price'; readonly value: Micros } | { readonly kind: 'fault'; readonly fault: PriceFault }

const DECIMAL = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/

/** Upper limit of prices: a higher one is more likely in atomic units instead of dollars. */
export const LARGEST_PRICE = 1_000_000n * 10n ** BigInt(PRICE_DECIMALS)

/**
 * Reads a price in USD from its source text: digits, a point, at most six decimals, greater than zero.
 *
 * @example
 * parsePrice('0.005') // { kind: 'price', value: 5000n }
 * parsePrice('1e-7')  // { kind: 'fault', fault: 'price_not_decimal' }
 */
export function parsePrice(text: string): ParsedPrice {
  const match = DECIMAL.exec(text)
  if (match === null) {
    const negative = text.startsWith('-') && DECIMAL.test(text.slice(1))
    return { kind: 'fault', fault: negative ? 'price_not_positive' : 'price_not_decimal' }
  }
  const [, whole = '0', fraction = ''] = match
  const significant = fraction.replace(/0+$/, '')
  if (significant.length > PRICE_DECIMALS) return { kind: 'fault', fault: 'price_too_precise' }
  const value = BigInt(whole + significant.padEnd(PRICE_DECIMALS, '0'))
  if (value === 0n) return { kind: 'fault', fault: 'price_not_positive' }
  if (value > LARGEST_PRICE) return { kind: 'fault', fault: 'price_too_large' }
  return { kind: 'price', value: toMicros(value) }
}

/** Micro-dollars from an integer. */
export function toMicros(value: bigint): Micros {
  return value as Micros
}

/** Six decimals, as price declarations and documents print it: `0.005000`. */
export function formatPrice(price: Micros): string {
  const digits = price.toString().padStart(PRICE_DECIMALS + 1, '0')
  return `${digits.slice(0, -PRICE_DECIMALS)}.${digits.slice(-PRICE_DECIMALS)}`
}

/** A decimal without zeros at its end, with at least two places: `0.005` for `0.005000`. */
export function shortDecimal(amount: string): string {
  return amount.replace(/(\.\d\d\d*?)0+$/, '$1')
}

/** The shortest exact form with at least two decimals: `0.005`, `0.25`, `1.00`. */
export function formatShort(price: Micros): string {
  return shortDecimal(formatPrice(price))
}

/**
 * A decimal by its source text in steps of its last place; undefined when it has a sign, an exponent or more places.
 *
 * @example
 * parseDecimal('0.05', 9) // 50000000n
 */
export function parseDecimal(text: string, places: number): bigint | undefined {
  const [, whole, fraction = ''] = DECIMAL.exec(text) ?? []
  return whole === undefined || fraction.length > places
    ? undefined
    : BigInt(whole + fraction.padEnd(places, '0'))
}

/** A number of such steps as a decimal, no longer than it has to be: `0.05`. */
export function formatDecimal(steps: bigint, places: number): string {
  const digits = steps.toString().padStart(places + 1, '0')
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`.replace(/\.?0+$/, '')
}

/**
 * Wei of an amount in gwei by its source text, as nodes and explorers write prices of gas; undefined when it is no
 * decimal of at most nine places greater than zero.
 *
 * @example
 * parseGwei('0.05') // 50000000n
 */
export function parseGwei(text: string): bigint | undefined {
  const wei = parseDecimal(text, 9)
  return wei === 0n ? undefined : wei
}

/** Like `parseGwei`, for an amount of a coin with 18 decimals, such as ETH. */
export function parseCoin(text: string): bigint | undefined {
  const billionths = parseGwei(text)
  return billionths === undefined ? undefined : billionths * 1_000_000_000n
}
