import type { DeclaredCount, DeclaredPrice } from '../schema.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'
import { COUNTER_NAMES, type Count, type CounterName, type Meter } from './meter.ts'

/** Compiles what is counted after the work, from its source text. Undefined: the price is known before it. */
export function compileMeter(
  document: SourceDocument,
  at: Path,
  declared: DeclaredPrice | string | number | undefined,
): Meter | undefined {
  if (typeof declared !== 'object' || declared.metered === undefined) return undefined
  const spelt = (...path: Path): string | undefined => document.spelling([...at, ...path])
  const [min, missing] = [spelt('min'), spelt('if_missing')]
  return {
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
}

/** What an entry counts; undefined when it names nothing or several things. */
export function counterOf(declared: DeclaredCount): readonly [CounterName, string] | undefined {
  const named = COUNTER_NAMES.flatMap((counter): [CounterName, string][] => {
    const of = declared[counter]
    return of === undefined ? [] : [[counter, of]]
  })
  return named.length === 1 ? named[0] : undefined
}
