import { JSONRepairError, jsonrepair } from 'jsonrepair'
import { InvalidParameter } from 'ratecard/handler'
import type { JsonObject, Warning } from 'ratecard/handler'
import { parseDocument } from './document.ts'
import { findValues } from './values-in-text.ts'

export interface Repaired {
  readonly result: JsonObject
  readonly warnings: readonly Warning[]
}

/**
 * Makes JSON of what was meant to be: missing quotes, commas and ends, comments, Python words. Values that are in
 * other text, as answers of language models do, are taken out of it first; several of them become an array.
 */
export function repair(text: string): Repaired {
  if (text === '') throw new InvalidParameter('data', 'data is required')
  const found = findValues(text)
  const meant = found.kind === 'whole' ? [text] : found.values
  const values = meant.map(withoutNaN)
  const repaired = joined(values.map(repairValue))
  const { value, warnings } = parseDocument('data', repaired)
  return {
    result: { value, text: repaired, changed: repaired !== text },
    warnings: [
      ...(found.kind === 'whole' ? [] : [surrounded(found.values.length)]),
      ...(values.some((value, place) => value !== meant[place]) ? [NO_NUMBER] : []),
      ...warnings,
    ],
  }
}

const NO_NUMBER: Warning = {
  code: 'not_a_number',
  message: 'data has NaN or Infinity, which JSON does not have: null stands in their place',
}

/** Strings are matched first, so that nothing in them is replaced. */
const NAN = /"(?:[^"\\]|\\.)*"|(?<=[:,[]\s{0,8})[+-]?(?:NaN|Infinity)(?=\s{0,8}(?:[,}\]]|$))/g

function withoutNaN(text: string): string {
  return text.replace(NAN, (match) => (match.startsWith('"') ? match : 'null'))
}

function joined(values: readonly string[]): string {
  const [only = ''] = values
  return values.length === 1 ? only : `[${values.join(',')}]`
}

function surrounded(values: number): Warning {
  const message =
    values === 1
      ? 'data holds one JSON value among other text'
      : `data holds ${values} JSON values: they are returned as an array, without what is between them`
  return { code: 'surrounding_text_removed', message }
}

function repairValue(text: string): string {
  try {
    return jsonrepair(text)
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidParameter('data', 'data is nested too deeply to repair')
    if (!(error instanceof JSONRepairError)) throw error
    const { position } = error
    throw new InvalidParameter('data', `data cannot be repaired: stuck at position ${position}`, { position })
  }
}
