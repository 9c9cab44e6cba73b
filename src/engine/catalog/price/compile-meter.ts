import type { Json } from '../../base/json.ts'
import { valueAt } from '../../base/json-pointer.ts'
import { formatPrice, type Micros } from '../../base/money.ts'
import type { DeclaredCount, DeclaredPrice } from '../schema.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'
import { computeMetered, COUNTER_NAMES, isCount } from './meter.ts'
import type { Count, CounterName, Meter } from './price.ts'
import type { Price } from './price.ts'

/** Compiles what is counted after the work, from its source text. Undefined: the price is known before it. */
export function compileMeter(
  document: SourceDocument,
  at: Path,
  declared: DeclaredPrice | string | number | undefined,
  { price, example }: Shown,
): Meter | undefined {
  if (typeof declared !== 'object' || declared.metered === undefined) return undefined
  const spelt = (...path: Path): string | undefined => document.spelling([...at, ...path])
  const [min, missing] = [spelt('min'), spelt('if_missing')]
  const meter = {
    base: spelt('base') ?? '0',
    counts: declared.metered.flatMap((each, place): Count[] => {
      const named = counterOf(each)
      if (named === undefined) return []
      const [counter, of] = named
      const unit = spelt('metered', place, 'unit') ?? '1'
      return [{ counter, of, unit, price: spelt('metered', place, 'price') ?? '0' }]
    }),
    ...(min === undefined ? {} : { min }),
    ...(missing === undefined ? {} : { if_missing: missing }),
  }
  const cost = price === undefined ? undefined : costOfExample(meter, price, example)
  return cost === undefined ? meter : { ...meter, example: formatPrice(cost) }
}

interface Shown {
  /** The ceiling. */
  readonly price: Price | undefined
  /** An answer. */
  readonly example: Json | undefined
}

/** The price of the example answer; undefined when it does not show every count. */
function costOfExample(meter: Meter, price: Price, example: Json | undefined): Micros | undefined {
  if (example === undefined) return undefined
  const counts = meter.counts.map(({ counter, of }) =>
    counter === 'value_of' ? valueAt(example, of) : undefined,
  )
  if (!counts.every(isCount)) return undefined
  const ceiling = typeof price === 'bigint' ? price : price.example
  return computeMetered(meter, counts, ceiling).amount
}

/** What an entry counts; undefined when it names nothing or several things. */
export function counterOf(declared: DeclaredCount): readonly [CounterName, string] | undefined {
  const named = COUNTER_NAMES.flatMap((counter): [CounterName, string][] => {
    const of = declared[counter]
    return of === undefined ? [] : [[counter, of]]
  })
  return named.length === 1 ? named[0] : undefined
}
