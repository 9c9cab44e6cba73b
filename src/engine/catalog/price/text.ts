import type { JsonObject } from '../../base/json.ts'
import { formatPrice } from '../../base/money.ts'
import { measureOf } from './measures.ts'
import type { ComputedPrice, Price, PriceRule, Quote, Rate } from './price.ts'
import { computePrice, usageOf } from './rule.ts'

/** A price as documents show it, with six decimals of USD; the range of a computed price. */
export function spellPrice(price: Price): string {
  if (typeof price === 'bigint') return formatPrice(price)
  const { lowest, highest } = price
  return `${formatPrice(lowest)} to ${formatPrice(highest)}`
}

/** The rule in brackets, to follow a range. */
export function ruleNote(price: Price): string {
  return typeof price === 'bigint' ? '' : ` (${spellRule(price.rule)})`
}

/** A price as JSON, in USD: its amount, or the range of a rule, the price of the example, and the rule in words. */
export function priceMembers(price: Price): JsonObject {
  if (typeof price === 'bigint') return { amount: formatPrice(price) }
  return { ...priceRange(price), example: formatPrice(price.example), rule: spellRule(price.rule) }
}

/** The price of one call and its parts. */
export function quoteMembers(price: Price, { amount, parts }: Quote): JsonObject {
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

/** A call in words and its price in USD. A type alias, so that templates accept it. */
export type PriceRow = { readonly call: string; readonly price: string }

/** The declaration of a price in payment documents: AgentCash’s `price`, with the rule in words. */
export function declaredPrice(price: Price): JsonObject {
  if (typeof price === 'bigint') return { mode: 'fixed', currency: 'USD', amount: formatPrice(price) }
  return { mode: 'dynamic', currency: 'USD', ...priceRange(price), rule: spellRule(price.rule) }
}
