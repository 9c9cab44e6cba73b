import { computeMetered } from '../../engine/catalog/price/meter.ts'
import type { Count, Meter } from '../../engine/catalog/price/price.ts'
import type { Price, PriceRule } from '../../engine/catalog/price/price.ts'
import { computePrice, usageOf } from '../../engine/catalog/price/rule.ts'
import { formatPrice, LARGEST_PRICE, toMicros, type Micros } from '../../engine/base/money.ts'

/** A call whose price rises: what it differs in from the cheapest one, if anything, with both prices. */
export interface Rise {
  /** Undefined: every call. */
  readonly parameter: string | undefined
  /** In words: `text = 1000: 0.001500 → 0.002000 USD`. */
  readonly line: string
}

/** One call that is priced by both rules. */
type Sample = Parameters<typeof usageOf>[0]

/** Counts in units of a rate, between the least and the most. */
const UNITS = [1, 2, 10, 100, 1_000]

/**
 * The calls that cost more by another price: the cheapest call, and for each argument that either price follows the first
 * call that differs in it and rises by more than the cheapest does.
 */
export function findRises(old: Price, now: Price): Rise[] {
  if (typeof old === 'bigint' && typeof now === 'bigint') return []
  const rise = (sample: Sample): bigint => costOf(now, sample) - costOf(old, sample)
  const floor = rise({})
  const riseOf = (parameter: string | undefined, name: string, sample: Sample): Rise => {
    const [before, after] = [old, now].map((price) => formatPrice(costOf(price, sample)))
    return { parameter, line: `${name}: ${before} → ${after} USD` }
  }
  const rises = floor > 0n ? [riseOf(undefined, 'the cheapest call', {})] : []
  for (const parameter of new Set([...namesOf(old), ...namesOf(now)])) {
    const found = samplesOf(parameter, [old, now]).find((sample) => rise(sample) > (floor > 0n ? floor : 0n))
    if (found !== undefined)
      rises.push(riseOf(parameter, `${parameter} = ${found.value ?? found.count}`, found))
  }
  return rises
}

/** What is counted in the comparison of two meters. */
const COUNTED = 1_000

/** What costs more after the work by another meter: an answer that has used nothing, and a thousand of each count. */
export function findMeterRises(old: Meter | undefined, now: Meter | undefined): Rise[] {
  if (old === undefined || now === undefined) return []
  const names = new Set([...old.counts, ...now.counts].map(nameOfCount))
  const costs = (meter: Meter, name: string | undefined): Micros =>
    computeMetered(
      meter,
      meter.counts.map((count) => (nameOfCount(count) === name ? COUNTED : 0)),
      toMicros(LARGEST_PRICE),
    ).amount
  const riseOf = (name: string | undefined, words: string): Rise[] => {
    const [before, after] = [costs(old, name), costs(now, name)]
    if (after <= before) return []
    return [{ parameter: undefined, line: `${words}: ${formatPrice(before)} → ${formatPrice(after)} USD` }]
  }
  const least = riseOf(undefined, 'an answer that has used nothing')
  return least.length > 0 ? least : [...names].flatMap((name) => riseOf(name, `${name} = ${COUNTED}`))
}

function nameOfCount({ counter, of }: Count): string {
  return `${counter} ${of}`
}

function costOf(price: Price, sample: Sample): Micros {
  return typeof price === 'bigint' ? price : computePrice(price.rule, usageOf(sample)).amount
}

function rulesOf(prices: readonly Price[]): PriceRule[] {
  return prices.flatMap((price) => (typeof price === 'object' ? [price.rule] : []))
}

function namesOf(price: Price): string[] {
  return rulesOf([price]).flatMap(({ per, by }) => [...by, ...per].map(({ parameter }) => parameter))
}

function samplesOf(parameter: string, prices: readonly Price[]): Sample[] {
  const rules = rulesOf(prices)
  const values = rules.flatMap(({ by }) => by.filter((each) => each.parameter === parameter))
  const rates = rules.flatMap(({ per }) => per.filter((each) => each.parameter === parameter))
  const counts = rates.flatMap(({ unit, included, most }) => [
    ...UNITS.map((units) => Number(included) + units * Number(unit)),
    ...(most === undefined ? [] : [most]),
  ])
  const within = counts.filter((count) =>
    rates.every(({ least, most = Infinity }) => count >= least && count <= most),
  )
  return [
    ...values.flatMap((choice) => choice.values.map((value) => ({ parameter, value }))),
    ...within.toSorted((a, b) => a - b).map((count) => ({ parameter, count })),
  ]
}
