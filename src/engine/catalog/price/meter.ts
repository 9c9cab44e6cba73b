import { formatDecimal, toMicros, type Micros } from '../../base/money.ts'
import type { PricePart } from '../../base/price-part.ts'
import type { CounterName, Meter } from './price.ts'
import { toFine } from './rule.ts'

/** What can be counted after the work, by its key in the catalog. */
export const COUNTERS = {
  value_of: {
    description:
      'JSON Pointer (RFC 6901) of a number in the answer; in a stream, in its last event that has it: /usage/total_tokens.',
    only: undefined,
  },
  usage_of: { description: 'A count that the handler returns under "usage", by its name.', only: undefined },
  bytes_of: { description: 'answer: the bytes of its body, before compression.', only: 'answer' },
  seconds_of: { description: 'work: the seconds until the handler has answered.', only: 'work' },
} as const satisfies Readonly<Record<CounterName, Counter>>

interface Counter {
  /** Text for people who edit the catalog. */
  readonly description: string
  /** The only thing it is counted of. */
  readonly only: string | undefined
}

export const COUNTER_NAMES = Object.keys(COUNTERS).filter(isCounterName)

function isCounterName(name: string): name is CounterName {
  return Object.hasOwn(COUNTERS, name)
}

/** What a call has cost by a meter, and why. */
export interface Metered {
  readonly amount: Micros
  readonly parts: readonly PricePart[]
  /** The rule gives more than the ceiling, which is charged. */
  readonly bound?: 'ceiling'
}

/** Parses a published meter; undefined when it cannot be parsed. */
export function readMeter(published: string): Meter | undefined {
  try {
    const { base, counts, min, if_missing: missing }: Meter = JSON.parse(published)
    const meter = {
      base,
      counts,
      ...(min === undefined ? {} : { min }),
      ...(missing === undefined ? {} : { if_missing: missing }),
    }
    computeMetered(meter, [], toMicros(0n))
    return meter
  } catch {
    return undefined
  }
}

/** Whether a value is a count that a price can be computed from: larger numbers have no exact value. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
}

/**
 * The price of a call with these counts, one for each of the meter: exact, rounded up once to the next micro-dollar, and
 * never above the ceiling.
 */
export function computeMetered(meter: Meter, counts: readonly number[], ceiling: Micros): Metered {
  const base = toFine(meter.base)
  let sum: Fraction = { above: base, below: 1n }
  const parts: PricePart[] = base === 0n ? [] : [{ part: 'base', amount: formatDecimal(base, PLACES) }]
  for (const [place, count] of meter.counts.entries()) {
    const counted = counts[place] ?? 0
    const { digits, scale } = exactDecimal(counted)
    const cost = { above: digits * toFine(count.price) * ONE, below: scale * toFine(count.unit) }
    sum = { above: sum.above * cost.below + cost.above * sum.below, below: sum.below * cost.below }
    parts.push({
      part: `${count.counter} ${count.of}`,
      count: counted,
      amount: formatDecimal(roundUp(cost), PLACES),
    })
  }
  const amount = roundUp({ above: sum.above, below: sum.below * FINE_PER_MICRO })
  return withinBounds(meter, { amount: toMicros(amount), parts }, ceiling)
}

/** The price of an answer with a missing count; undefined when the rule names none. */
export function priceOfMissing({ if_missing: price }: Meter, ceiling: Micros): Metered | undefined {
  if (price === undefined) return undefined
  const amount = toMicros(roundUp({ above: toFine(price), below: FINE_PER_MICRO }))
  const parts = [{ part: 'if_missing', amount: price }]
  return amount > ceiling ? atCeiling(parts, ceiling) : { amount, parts }
}

function withinBounds({ min }: Meter, metered: Metered, ceiling: Micros): Metered {
  const { amount, parts } = metered
  if (amount > ceiling) return atCeiling(parts, ceiling)
  if (min === undefined) return metered
  const least = toMicros(toFine(min) / FINE_PER_MICRO)
  if (amount >= least) return metered
  const raised = { amount: least, parts: [...parts, { part: 'min', amount: min }] }
  return least > ceiling ? atCeiling(raised.parts, ceiling) : raised
}

function atCeiling(parts: readonly PricePart[], ceiling: Micros): Metered {
  const spelt = formatDecimal(ceiling, 6)
  return { amount: ceiling, parts: [...parts, { part: 'ceiling', amount: spelt }], bound: 'ceiling' }
}

/** Decimal places of a rule. */
const PLACES = 12
const ONE = 10n ** BigInt(PLACES)
const FINE_PER_MICRO = 1_000_000n

interface Fraction {
  readonly above: bigint
  readonly below: bigint
}

function roundUp({ above, below }: Fraction): bigint {
  return (above + below - 1n) / below
}

/** The exact decimal of a count as ECMAScript prints it: `digits` divided by `scale`. */
function exactDecimal(count: number): { readonly digits: bigint; readonly scale: bigint } {
  const [, whole = '0', fraction = '', exponent = '0'] =
    /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(count)) ?? []
  const places = fraction.length - Number(exponent)
  const digits = BigInt(whole + fraction)
  return places >= 0
    ? { digits, scale: 10n ** BigInt(places) }
    : { digits: digits * 10n ** BigInt(-places), scale: 1n }
}
