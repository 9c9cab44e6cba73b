import type { Argument, Arguments } from '../../handler.ts'
import { isJsonObject } from '../../base/json.ts'
import { formatDecimal, parseDecimal, parsePrice, toMicros, type Micros } from '../../base/money.ts'
import type { PricePart } from '../../base/price-part.ts'
import { measureOf } from './measures.ts'
import type { Choice, Place, Price, PriceRule, Quote, Rate } from './price.ts'

/** The price of a call by a rule, from validated arguments with defaults. */
export function quoteRule(rule: PriceRule, args: Arguments): Quote {
  return computePrice(rule, {
    count: (rate) => countOf(rate, valueAt(rate, args)),
    value: (choice) => chosen(valueAt(choice, args)),
  })
}

/**
 * A member that only some forms of a body declare may have any value in the others: a value that cannot be counted
 * adds nothing, and at most the declared limit is counted.
 */
function countOf({ measure, member, most = Infinity }: Rate, value: Argument | undefined): number {
  const counted = value === undefined ? 0 : measureOf(measure).count(value)
  if (counted !== undefined) return member === undefined ? counted : Math.min(counted, most)
  if (member !== undefined) return 0
  throw new TypeError(`${measure} does not fit this argument`)
}

function valueAt({ argument, member, default: usual }: Place, args: Arguments): Argument | undefined {
  const given = args[argument]
  if (member === undefined) return given
  return (isJsonObject(given) && Object.hasOwn(given, member) ? given[member] : undefined) ?? usual
}

/** Parses a published price: a range, and its rule as JSON. Undefined when it cannot be parsed. */
export function readPrice(min: string, max: string, rule: string): Price | undefined {
  const [lowest, highest] = [parsePrice(min), parsePrice(max)]
  if (lowest.kind === 'fault' || highest.kind === 'fault') return undefined
  try {
    const read: PriceRule = JSON.parse(rule)
    const { amount: example } = computePrice(read, usageOf({}))
    return { rule: read, lowest: lowest.value, highest: highest.value, example }
  } catch {
    return undefined
  }
}

/** What a rule needs to know of a call. */
export interface Usage {
  readonly count: (rate: Rate) => number
  /** Undefined when the call has no such value. */
  readonly value: (choice: Choice) => string | undefined
}

/** Decimal places of rates, which are finer than amounts: a millionth of a micro-dollar, and equally fine counts. */
const PLACES = 12
const FINE_PER_MICRO = 1_000_000n

/** Units are rounded up; the sum is rounded up to the next micro-dollar; `min` and `max` apply last. */
export function computePrice({ base, by, per, min, max }: PriceRule, usage: Usage): Quote {
  const parts: PricePart[] = []
  let sum = 0n
  const add = (fine: bigint, part: Omit<PricePart, 'amount'>): void => {
    sum += fine
    parts.push({ ...part, amount: formatDecimal(fine, PLACES) })
  }
  if (toFine(base) > 0n) add(toFine(base), { part: 'base' })
  for (const choice of by) {
    const value = usage.value(choice)
    const price =
      value !== undefined && Object.hasOwn(choice.prices, value) ? choice.prices[value] : undefined
    if (value !== undefined && price !== undefined) add(toFine(price), { part: choice.parameter, value })
  }
  for (const rate of per) {
    const counted = usage.count(rate)
    const above = countToFine(counted) - toFine(rate.included)
    const units = above > 0n ? ceil(above, toFine(rate.unit)) : 0n
    const part = `${rate.measure} ${rate.parameter}`
    add(units * toFine(rate.price), { part, count: counted, units: Number(units) })
  }
  const amount = ceil(sum, FINE_PER_MICRO)
  const bound = (part: 'min' | 'max', limit: string): Quote => ({
    amount: toMicros(toFine(limit) / FINE_PER_MICRO),
    parts: [...parts, { part, amount: limit }],
  })
  if (max !== undefined && amount * FINE_PER_MICRO > toFine(max)) return bound('max', max)
  if (min !== undefined && amount * FINE_PER_MICRO < toFine(min)) return bound('min', min)
  return { amount: toMicros(amount), parts }
}

/** The usage of the cheapest call, or with `changed` of a call that differs from it in one argument. */
export function usageOf(changed: {
  readonly parameter?: string
  readonly count?: number
  readonly value?: string
}): Usage {
  return {
    count: ({ parameter, least }) => (parameter === changed.parameter ? (changed.count ?? least) : least),
    value: ({ parameter, prices, values, required }) => {
      if (parameter === changed.parameter && changed.value !== undefined) return changed.value
      const costOf = (value: string): bigint => toFine(prices[value] ?? '0')
      return required
        ? values.toSorted((a, b) => (costOf(a) < costOf(b) ? -1 : costOf(a) > costOf(b) ? 1 : 0))[0]
        : undefined
    },
  }
}

/** A checked decimal of a rule as an integer of its smallest step. Throws `RangeError` for any other text. */
export function toFine(text: string): bigint {
  const fine = parseDecimal(text, PLACES)
  if (fine === undefined) throw new RangeError(`${text} is no decimal of a price rule`)
  return fine
}

/** Whether this is a decimal that a rule can contain. */
export function isRuleDecimal(text: string): boolean {
  return parseDecimal(text, PLACES) !== undefined
}

function ceil(value: bigint, unit: bigint): bigint {
  return (value + unit - 1n) / unit
}

/**
 * The exact decimal of a number as ECMAScript prints it, rounded up to twelve decimals: units have no more, so this
 * does not change their count. A negative number counts as zero.
 */
function countToFine(value: number): bigint {
  const match = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))
  if (match === null) return 0n
  const [, whole = '', fraction = '', exponent = '0'] = match
  const shift = PLACES + Number(exponent) - fraction.length
  const digits = BigInt(whole + fraction)
  return shift >= 0 ? digits * 10n ** BigInt(shift) : ceil(digits, 10n ** BigInt(-shift))
}

function chosen(value: Argument | undefined): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined
}

/** Undefined when the rule does not fit the type of an argument, because it was withdrawn or is invalid. */
export function tryRule(rule: PriceRule, args: Arguments): Micros | undefined {
  try {
    return quoteRule(rule, args).amount
  } catch (fault) {
    if (fault instanceof TypeError) return undefined
    throw fault
  }
}
