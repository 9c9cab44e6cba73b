import type { JsonObject } from '../json.ts'

/** A JSON document as it is served and pinned: two spaces, one final newline. */
export function printJson(value: JsonObject): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

/** The same without white space, for what agents load whole: of OpenAPI's bytes two thirds were indentation. */
export function packJson(value: JsonObject): string {
  return `${JSON.stringify(value)}\n`
}
