import type { JSONSchemaType } from 'ajv/dist/2020.js'

/** An amount as answers show it. A type, not an interface, so that it counts as JSON. */
export type Money = {
  readonly amount: number
  /** In the smallest unit of the currency: cents, but whole yen and thousandths of a Kuwaiti dinar. */
  readonly amount_minor: number
  readonly currency: string
  readonly formatted: string
}

/** The form in a cache. */
export const MONEY: JSONSchemaType<Money> = {
  type: 'object',
  required: ['amount', 'amount_minor', 'currency', 'formatted'],
  properties: {
    amount: { type: 'number' },
    amount_minor: { type: 'integer' },
    currency: { type: 'string' },
    formatted: { type: 'string' },
  },
}

/** ISO 4217: the currencies that do not have two decimals. */
const DECIMALS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF',
    3: 'BHD IQD JOD KWD LYD OMR TND',
  }).flatMap(([decimals, codes]) => codes.split(' ').map((code) => [code, Number(decimals)] as const)),
)

/**
 * Money from a whole number of hundredths, whatever the currency's own smallest unit. `formatted` is the source's own
 * wording where it has one. Throws RangeError when the currency cannot hold the amount exactly.
 *
 * @example
 * moneyFromHundredths(1999n, 'USD')   // { amount: 19.99, amount_minor: 1999, currency: 'USD', formatted: '$19.99' }
 * moneyFromHundredths(199900n, 'JPY') // { amount: 1999, amount_minor: 1999, currency: 'JPY', formatted: '¥1,999' }
 */
export function moneyFromHundredths(hundredths: bigint, currency: string, formatted?: string | null): Money {
  const decimals = DECIMALS.get(currency) ?? 2
  const scaled = hundredths * 10n ** BigInt(decimals)
  if (scaled % 100n !== 0n) throw new RangeError(`${hundredths} hundredths are no amount in ${currency}`)
  const digits = hundredths.toString().padStart(3, '0')
  const amount = Number(`${digits.slice(0, -2)}.${digits.slice(-2)}`)
  const amount_minor = Number(scaled / 100n)
  return { amount, amount_minor, currency, formatted: formatted ?? format(amount, currency, decimals) }
}

function format(amount: number, currency: string, decimals: number): string {
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  return new Intl.NumberFormat('en-US', { style: 'currency', currency, ...digits }).format(amount)
}
