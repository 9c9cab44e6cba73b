import { JSONRepairError, jsonrepair } from 'jsonrepair'
import { InvalidParameter } from '../../../../engine/index.ts'
import type { JsonObject, Warning } from '../../../../engine/index.ts'
import { parseDocument } from './document.ts'

export interface Repaired {
  readonly result: JsonObject
  readonly warnings: readonly Warning[]
}

/** Makes JSON of what was meant to be: missing quotes, commas and ends, comments, Python words, fences of Markdown. */
export function repair(text: string): Repaired {
  if (text === '') throw new InvalidParameter('data', 'data is required')
  const repaired = mend(text)
  const { value, warnings } = parseDocument('data', repaired)
  return { result: { value, text: repaired, changed: repaired !== text }, warnings }
}

function mend(text: string): string {
  try {
    return jsonrepair(text)
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidParameter('data', 'data is nested too deeply to repair')
    if (!(error instanceof JSONRepairError)) throw error
    const { position } = error
    throw new InvalidParameter('data', `data cannot be repaired: stuck at position ${position}`, { position })
  }
}
