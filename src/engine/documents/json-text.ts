import type { JsonObject } from '../json.ts'

/** A JSON document as it is served and pinned: two spaces, one final newline. */
export function printJson(value: JsonObject): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
