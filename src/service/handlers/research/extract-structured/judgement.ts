import type { Json, JsonObject } from 'ratecard/handler'
import { validate } from '../../util/json/validation.ts'

/** Both as JSON text: a plain copy into a thread would lose a member called `__proto__`. */
export interface Case {
  readonly schema: string
  /** The data to validate; undefined to check the schema alone. */
  readonly written: string | undefined
}

export type Judgement =
  | { readonly kind: 'sound' }
  | { readonly kind: 'fits'; readonly value: Json }
  | { readonly kind: 'differs'; readonly errors: readonly JsonObject[] }
  | { readonly kind: 'not_json' }

/** Holds a text against a schema. Throws `InvalidParameter` for `schema` when that cannot be worked with. */
export function judge({ schema: text, written }: Case): Judgement {
  const schema: Json = JSON.parse(text)
  if (written === undefined) {
    // An object without members is the shortest way to find a schema that leads back to itself without an end.
    validate({}, schema)
    return { kind: 'sound' }
  }
  const value = readJson(written)
  if (value === undefined) return { kind: 'not_json' }
  const { valid, errors } = validate(value, schema)
  return valid ? { kind: 'fits', value } : { kind: 'differs', errors }
}

function readJson(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined
    throw cause
  }
}
