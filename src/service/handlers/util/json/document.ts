import { InvalidParameter } from 'ratecard/handler'
import type { Json, Warning } from 'ratecard/handler'
import { scan } from './scan.ts'

export interface Document {
  readonly value: Json
  readonly warnings: readonly Warning[]
}

/**
 * Parses one parameter as JSON, with the meaning `JSON.parse` gives it: numbers are 64-bit floats, of repeated keys the
 * last counts, keys that look like array indices move to the front. The first two are told in warnings; the third
 * changes no JSON value, since objects have no order.
 *
 * A key `__proto__` is an own member like any other. Code that reads members must ask `Object.hasOwn` or walk
 * `Object.entries`, and must build objects with `Object.fromEntries`, which defines members and never calls a setter.
 */
export function parseDocument(name: string, text: string): Document {
  if (text === '') throw new InvalidParameter(name, `${name} is required`)
  const { repeatedKeys, roundedNumbers } = scan(name, text)
  const warnings: Warning[] = []
  if (repeatedKeys.length > 0) {
    warnings.push({
      code: 'repeated_keys',
      message: `${name} repeats ${count(repeatedKeys, 'key')} within an object, first at position ${repeatedKeys[0]}; the last value counts`,
    })
  }
  if (roundedNumbers.length > 0) {
    warnings.push({
      code: 'rounded_numbers',
      message: `${name} has ${count(roundedNumbers, 'number')} with more digits than a 64-bit float holds, first at position ${roundedNumbers[0]}; the nearest float is used`,
    })
  }
  return { value: JSON.parse(text), warnings }
}

function count(positions: readonly number[], noun: string): string {
  return positions.length === 1 ? `1 ${noun}` : `${positions.length} ${noun}s`
}
