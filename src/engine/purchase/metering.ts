import { Failure } from '../base/errors.ts'
import { isJsonObject } from '../base/json.ts'
import { valueAt } from '../base/json-pointer.ts'
import { formatShort, type Micros } from '../base/money.ts'
import { once } from '../base/once.ts'
import { computeMetered, isCount, priceOfMissing, type Metered } from '../catalog/price/meter.ts'
import type { Count, Meter } from '../catalog/price/price.ts'
import { documentsOf, type AnswerEnd } from './usage-documents.ts'

/** Work that is done, as far as a price depends on it. */
export interface DoneWork {
  readonly answer: AnswerEnd
  /** What the handler has returned under `usage`. */
  readonly usage: unknown
  /** Milliseconds that it took. */
  readonly took: number
}

export interface MeteredOperation {
  readonly id: string
  readonly meter: Meter
  /** The most that the call may cost. */
  readonly ceiling: Micros
  /** Tells the operator of work that does not say what it has used, or costs more than its ceiling. */
  readonly report: (fault: unknown) => void
}

/** The price of work. Throws `usage_missing` when a count is missing and the catalog names no price for that. */
export function meterWork(metered: MeteredOperation, work: DoneWork): Metered {
  const { id, meter, ceiling, report } = metered
  const read = once(() => documentsOf(work.answer))
  const found = meter.counts.map((count) => find(count, work, read))
  const missing = found.findIndex((value) => !isCount(value))
  if (missing >= 0) {
    const { counter = '', of = '' } = meter.counts[missing] ?? {}
    return meterUnknown(metered, `${counter} ${of} is ${describe(found[missing])}`)
  }
  const counts = found.filter(isCount)
  const price = computeMetered(meter, counts, ceiling)
  if (price.bound !== undefined) {
    const used = meter.counts.map(({ counter, of }, place) => `${counter} ${of} is ${counts[place] ?? 0}`)
    const most = `${formatShort(ceiling)} USD`
    report(new Error(`${id} costs more than its ceiling of ${most}, which is charged: ${used.join(', ')}`))
  }
  return price
}

/** The price of work that does not say what it has used. `reason`: what is missing, for the operator. */
export function meterUnknown({ id, meter, ceiling, report }: MeteredOperation, reason: string): Metered {
  const price = priceOfMissing(meter, ceiling)
  if (price === undefined) {
    report(
      new Error(`the usage of ${id} is not known, and its answer is withheld and not charged: ${reason}`),
    )
    throw new Failure('usage_missing', 'what this call has used is not known; nothing was charged')
  }
  const charged = `${formatShort(price.amount)} USD`
  report(new Error(`the usage of ${id} is not known, and ${charged} is charged by "if_missing": ${reason}`))
  return price
}

function find(
  { counter, of }: Count,
  { answer, usage, took }: DoneWork,
  read: () => ReturnType<typeof documentsOf>,
): unknown {
  switch (counter) {
    case 'value_of':
      return read()
        .map((each) => valueAt(each, of))
        .find((value) => value !== undefined)
    case 'usage_of':
      if (usage instanceof Promise) return usage
      return isJsonObject(usage) && Object.hasOwn(usage, of) ? usage[of] : undefined
    case 'bytes_of':
      return answer.size
    case 'seconds_of':
      return Math.max(0, took) / 1_000
  }
}

/** A value that is no count, for the operator: what answers contain may be private, so that no text is shown. */
function describe(value: unknown): string {
  if (value === undefined) return 'missing'
  if (typeof value === 'number') return `${value}, which is no count`
  if (value === null) return 'null'
  if (value instanceof Promise) return 'a promise, which the handler has to await before it answers'
  return Array.isArray(value) ? 'a list' : `of type ${typeof value}`
}
