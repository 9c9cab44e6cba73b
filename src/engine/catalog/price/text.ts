import { compact, type JsonObject } from '../../base/json.ts'
import { formatPrice, formatShort, toMicros } from '../../base/money.ts'
import { measureOf } from './measures.ts'
import type { Count, Meter } from './price.ts'
import { highestOf, type ComputedPrice, type Price, type PriceRule, type Quote, type Rate } from './price.ts'
import { computePrice, toFine, usageOf } from './rule.ts'

/** A price as documents show it, with six decimals of USD; the range of a computed price, the ceiling of a metered one. */
export function spellPrice(price: Price, meter?: Meter): string {
  if (meter !== undefined) return `up to ${formatPrice(highestOf(price))}`
  if (typeof price === 'bigint') return formatPrice(price)
  const { lowest, highest } = price
  return `${formatPrice(lowest)} to ${formatPrice(highest)}`
}

/** The rule in brackets, to follow a range. */
export function ruleNote(price: Price, meter?: Meter): string {
  if (meter !== undefined) return ` (${spellMetered(price, meter)})`
  return typeof price === 'bigint' ? '' : ` (${spellRule(price.rule)})`
}

/** A price as JSON, in USD: its amount, or the range of a rule, the price of the example, and the rule in words. */
export function priceMembers(price: Price, meter?: Meter): JsonObject {
  if (meter !== undefined) return meteredMembers(price, meter)
  if (typeof price === 'bigint') return { amount: formatPrice(price) }
  return { ...priceRange(price), example: formatPrice(price.example), rule: spellRule(price.rule) }
}

function meteredMembers(price: Price, meter: Meter): JsonObject {
  const { example } = meter
  return {
    min: lowestMetered(meter),
    max: formatPrice(highestOf(price)),
    ...(example === undefined ? {} : { example }),
    rule: spellMetered(price, meter),
  }
}

/** What an answer costs that has used nothing. */
function lowestMetered({ base, min }: Meter): string {
  return formatPrice(toMicros(ceilToMicros(toFine(base) > toFine(min ?? '0') ? base : (min ?? '0'))))
}

function ceilToMicros(decimal: string): bigint {
  return (toFine(decimal) + 999_999n) / 1_000_000n
}

/** The price of one call and its parts; of a metered one the most that it may cost. */
export function quoteMembers(price: Price, { amount, parts }: Quote, meter?: Meter): JsonObject {
  if (meter !== undefined)
    return { ...meteredMembers(price, meter), max: formatPrice(amount), currency: 'USD' }
  const due = { amount: formatPrice(amount), currency: 'USD' }
  if (typeof price === 'bigint') return due
  return { ...due, rule: spellRule(price.rule), ...(parts === undefined ? {} : { parts }) }
}

/** Smallest and largest price. */
export function priceRange(price: Price): { readonly min: string; readonly max: string } {
  const [lowest, highest] = typeof price === 'bigint' ? [price, price] : [price.lowest, price.highest]
  return { min: formatPrice(lowest), max: formatPrice(highest) }
}

/** A rule in words: `0.001 + 0.0005 per 1,000 characters of text, at most 0.05`; amounts are USD. */
export function spellRule({ base, by, per, min, max }: PriceRule): string {
  const sum = [
    ...(base === '0' ? [] : [base]),
    ...per.map(spellRate),
    ...by.map(({ parameter, prices }) => {
      const added = Object.entries(prices).map(([value, price]) => `${price} if ${value}`)
      return `${parameter} (${added.join(', ')})`
    }),
  ].join(' + ')
  return [
    sum,
    ...(min === undefined ? [] : [`at least ${min}`]),
    ...(max === undefined ? [] : [`at most ${max}`]),
  ].join(', ')
}

/** A meter in words, with its ceiling: `0.0002 + 0.0005 per 1,000 of /usage/total_tokens, at most 0.05`. */
export function spellMetered(price: Price, { base, counts, min, if_missing: missing }: Meter): string {
  const sum = [...(toFine(base) === 0n ? [] : [base]), ...counts.map(spellCount)].join(' + ')
  const ceiling = typeof price === 'bigint' ? formatShort(price) : `${spellRule(price.rule)}`
  return [
    `${sum}, counted after the work`,
    ...(min === undefined ? [] : [`at least ${min}`]),
    ...(missing === undefined ? [] : [`${missing} if a count is missing`]),
    `at most ${ceiling}`,
  ].join(', ')
}

function spellCount({ counter, of, unit, price }: Count): string {
  const size = unit === '1' ? '' : `${grouped(unit)} `
  switch (counter) {
    case 'value_of':
    case 'usage_of':
      return `${price} per ${size === '' ? 'unit ' : size}of ${of}`
    case 'bytes_of':
      return `${price} per ${size === '' ? 'byte' : `${size}bytes`} of the answer`
    case 'seconds_of':
      return `${price} per ${size === '' ? 'second' : `${size}seconds`} of work`
  }
}

function spellRate({ measure, parameter, unit, price, included }: Rate): string {
  const units = measureOf(measure).words.unit(grouped(unit))
  const free = included === '0' ? '' : ` above ${grouped(included)}`
  return `${price} per ${units} of ${parameter}${free}`
}

/** Groups thousands: `1,000`. */
function grouped(decimal: string): string {
  const [whole = '', fraction] = decimal.split('.')
  const spelt = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  return fraction === undefined ? spelt : `${spelt}.${fraction}`
}

/** Calls with their prices: the cheapest, that of the examples, and for each argument some that differ in it. */
export function priceTable({ rule, lowest, highest, example }: ComputedPrice): PriceRow[] {
  const rows = [
    ...rule.per.flatMap(({ measure, parameter, unit, included, most }) => {
      const [first, many] = [1, 10].map((units) => Number(included) + units * Number(unit))
      const counts = [first ?? 0, many ?? 0, most ?? 0].filter((count) => most === undefined || count <= most)
      return [...new Set(counts)]
        .filter((count) => count > 0)
        .map((count) => ({
          parameter,
          count,
          call: `${measureOf(measure).words.call(grouped(String(count)))} ${parameter}`,
        }))
    }),
    ...rule.by.flatMap(({ parameter, prices }) =>
      Object.keys(prices).map((value) => ({ parameter, value, call: `${parameter}: ${value}` })),
    ),
  ].map(({ call, ...changed }) => ({
    call,
    price: formatPrice(computePrice(rule, usageOf(changed)).amount),
  }))
  return [
    { call: 'the cheapest call', price: formatPrice(lowest) },
    { call: 'the call of the examples', price: formatPrice(example) },
    ...rows,
    { call: 'the most expensive call', price: formatPrice(highest) },
  ]
}

/** Calls with a metered price. */
export function meterTable(price: Price, meter: Meter): PriceRow[] {
  const { example } = meter
  return [
    { call: 'an answer that has used nothing', price: lowestMetered(meter) },
    ...(example === undefined ? [] : [{ call: 'the answer of the example', price: example }]),
    { call: 'the most that a call may cost', price: formatPrice(highestOf(price)) },
  ]
}

/** A call in words and its price in USD. A type alias, so that templates accept it. */
export type PriceRow = { readonly call: string; readonly price: string }

/** The declaration of a price in payment documents: AgentCash’s `price`, with the rule in words. */
export function declaredPrice(price: Price, meter?: Meter): JsonObject {
  if (meter !== undefined) {
    const { min, max, rule } = meteredMembers(price, meter)
    return compact({ mode: 'dynamic', currency: 'USD', min, max, rule })
  }
  if (typeof price === 'bigint') return { mode: 'fixed', currency: 'USD', amount: formatPrice(price) }
  return { mode: 'dynamic', currency: 'USD', ...priceRange(price), rule: spellRule(price.rule) }
}
