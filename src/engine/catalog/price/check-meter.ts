import { formatShort, parsePrice } from '../../base/money.ts'
import type { CheckContext, DeclaredEntry } from '../check-context.ts'
import { error, type Issue } from '../issue.ts'
import type { DeclaredPrice } from '../schema.ts'
import type { Path, SourceDocument } from '../yaml-document.ts'
import { faultMessage, unusual } from './check-prices.ts'
import { counterOf } from './compile-meter.ts'
import { COUNTER_NAMES } from './meter.ts'
import type { Price } from './price.ts'
import { isRuleDecimal, toFine } from './rule.ts'

/** RFC 6901; the whole answer is no number. */
const POINTER = /^(?:\/(?:[^~/]|~[01])*)+$/

const FINE_PER_MICRO = 1_000_000n

/** Checks what is counted after the work; the ceiling is checked as the price that it is. */
export function* checkMeter(
  { document, declared: { payments } }: CheckContext,
  at: Path,
  entry: DeclaredEntry['entry'],
  declared: DeclaredPrice,
): Generator<Issue> {
  for (const key of ['by', 'per', 'max'] as const)
    if (declared[key] !== undefined) {
      const message = `a price that is counted after the work has no "${key}": write it under "ceiling"`
      yield error('meter_key_misplaced', document.atKey([...at, key]), message)
    }
  yield* checkAmounts(document, at, declared)
  for (const [place, each] of (declared.metered ?? []).entries()) {
    const position = document.at([...at, 'metered', place])
    const named = counterOf(each)
    if (named === undefined) {
      const message = `counts one thing: write one of ${COUNTER_NAMES.join(', ')}`
      yield error('meter_count_missing', position, message)
      continue
    }
    const [counter, of] = named
    const spot = document.at([...at, 'metered', place, counter])
    if (counter === 'value_of' && !POINTER.test(of)) {
      const message = `${of || 'an empty text'} is no JSON Pointer to a member: write it as /usage/total_tokens`
      yield error('meter_pointer_invalid', spot, message)
    }
    if (counter === 'usage_of' && entry.handler === 'proxy') {
      const message = 'a proxied API returns no "usage" of its own: write value_of with a JSON Pointer'
      yield error('meter_usage_of_proxy', spot, message)
    }
    if (counter === 'usage_of' && entry.response?.stream === true) {
      const message = 'a stream comes without "usage": write value_of, and send the count in its last event'
      yield error('meter_usage_of_stream', spot, message)
    }
    if (counter === 'seconds_of' && 'cache' in entry) {
      const message = 'an answer from the cache takes no time: remove the cache, or count something else'
      yield error('meter_seconds_cached', spot, message)
    }
  }
  if (declared.ceiling === undefined) {
    const message = 'a price that is counted after the work needs a ceiling: what buyers authorize at most'
    yield error('meter_ceiling_missing', document.at(at), message)
  } else if (typeof declared.ceiling !== 'object') yield* checkFixed(document, [...at, 'ceiling'])
  if (entry.settle === 'upfront') {
    const message = 'a price that is counted after the work cannot be charged before it: remove "settle"'
    yield error('meter_upfront', document.at(at), message)
  }
  if (payments !== undefined && payments.x402 === undefined) {
    const message =
      'by MPP nothing can be charged but the amount that was signed: add payments.x402, or give a fixed price'
    yield error('meter_without_x402', document.at(at), message)
  }
}

function* checkAmounts(document: SourceDocument, at: Path, declared: DeclaredPrice): Generator<Issue> {
  const places: Path[] = [
    ['base'],
    ...(declared.metered ?? []).flatMap((_, place) => [
      ['metered', place, 'price'],
      ['metered', place, 'unit'],
    ]),
    ['if_missing'],
  ]
  for (const place of places) {
    const spelling = document.spelling([...at, ...place])
    if (spelling === undefined) continue
    const key = place.at(-1)
    const position = document.at([...at, ...place])
    if (!isRuleDecimal(spelling)) {
      const message = `${spelling || 'an empty text'} is no plain decimal: write digits and a point, at most twelve places`
      yield error('price_not_decimal', position, message)
    } else if (toFine(spelling) === 0n && key === 'unit')
      yield error('price_unit_zero', position, 'a unit is greater than 0')
    else if (toFine(spelling) === 0n && key === 'price')
      yield error('price_not_positive', position, 'a price is greater than 0')
  }
  if (declared.min !== undefined) yield* checkFixed(document, [...at, 'min'])
}

function* checkFixed(document: SourceDocument, at: Path): Generator<Issue> {
  const spelling = document.spelling(at) ?? ''
  if (spelling === 'free') {
    yield error('price_not_positive', document.at(at), 'a price is greater than 0: write an amount')
    return
  }
  const price = parsePrice(spelling)
  if (price.kind === 'fault')
    yield error(price.fault, document.at(at), faultMessage(price.fault, spelling.trim(), 'amount'))
}

/** What a ceiling has to cover: otherwise some calls cost less than the rule says, whatever they use. */
export function* checkCeiling(
  document: SourceDocument,
  at: Path,
  declared: DeclaredPrice,
  ceiling: Price,
): Generator<Issue> {
  const lowest = typeof ceiling === 'bigint' ? ceiling : ceiling.lowest
  for (const key of ['base', 'min', 'if_missing'] as const) {
    const spelling = document.spelling([...at, key])
    if (declared[key] === undefined || spelling === undefined || !isRuleDecimal(spelling)) continue
    if (toFine(spelling) <= lowest * FINE_PER_MICRO) continue
    const message = `${key} is ${spelling}, and the ceiling of a call may be ${formatShort(lowest)}: raise the ceiling`
    yield error('meter_ceiling_too_low', document.at([...at, 'ceiling']), message)
  }
  if (typeof ceiling === 'bigint') yield* unusual(ceiling, ceiling, document.at([...at, 'ceiling']))
}
