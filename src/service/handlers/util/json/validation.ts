import { Ajv } from 'ajv'
import { Ajv2020, MissingRefError } from 'ajv/dist/2020.js'
import type { ErrorObject, Options, ValidateFunction } from 'ajv'
import formats from 'ajv-formats'
import { InvalidParameter, isJsonObject } from 'ratecard/handler'
import type { Json, JsonObject } from 'ratecard/handler'
import { compilePattern } from './pattern.ts'

const MAX_ERRORS = 50

const OPTIONS: Options = {
  allErrors: true,
  strict: false,
  logger: false,
  // the quotient of two decimals is seldom whole: 0.3 / 0.1 is 2.9999999999999996
  multipleOfPrecision: 9,
  // without it `required: ["toString"]` is satisfied by every object
  ownProperties: true,
  // a definition that is used often would otherwise be copied into the generated code as often
  inlineRefs: false,
  code: { regExp: Object.assign(regExp, { code: 'new RegExp' }) },
}

export interface Verdict {
  readonly valid: boolean
  readonly errors: readonly JsonObject[]
  /** All of them, also those above the 50 that `errors` lists. */
  readonly error_count: number
}

/**
 * Validates against a JSON Schema of draft 2020-12 or, if `$schema` says so, draft-07; formats are checked. Nothing is
 * ever loaded: a `$ref` must lead to a place inside the schema.
 */
export function validate(data: Json, schema: Json): Verdict {
  if (!isJsonObject(schema) && typeof schema !== 'boolean') {
    throw new InvalidParameter('schema', 'schema must be a JSON Schema: an object, true or false')
  }
  // the compiler leaves such members out, so what they demand would count as met
  if (JSON.stringify(schema).includes('"__proto__":')) {
    throw new InvalidParameter('schema', "schema has a member named '__proto__', which cannot be checked")
  }
  const check = followed(() => compile(schema))
  const valid = followed(() => check(data))
  const errors = check.errors ?? []
  return { valid, errors: errors.slice(0, MAX_ERRORS).map(describe), error_count: errors.length }
}

/**
 * Both documents have 64 levels at most, so only a schema that leads back to itself can exhaust the stack. The compiler
 * looks anchors up among members that every object has (`constructor`), and what it finds there is no schema.
 */
function followed<Result>(follow: () => Result): Result {
  try {
    return follow()
  } catch (error) {
    if (error instanceof InvalidParameter) throw error
    const sentence =
      error instanceof RangeError
        ? 'schema refers to itself without an end'
        : 'schema has a reference that cannot be followed'
    throw new InvalidParameter('schema', sentence)
  }
}

/** A new compiler every time: it keeps each schema it has seen. */
function compile(schema: JsonObject | boolean): ValidateFunction {
  const ajv = isDraft07(schema) ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS)
  formats.default(ajv)
  try {
    if (!ajv.validateSchema(schema)) {
      const path = ajv.errors?.[0]?.instancePath ?? ''
      throw new InvalidParameter('schema', `schema is not a valid JSON Schema at '${path}'`, { path })
    }
    const check = ajv.compile(schema)
    // the compiler's own extension: the answer would be a promise, which is never false
    if ('$async' in check)
      throw new InvalidParameter('schema', 'schema uses $async, which JSON Schema has not')
    return check
  } catch (error) {
    if (error instanceof InvalidParameter || error instanceof RangeError) throw error
    if (error instanceof MissingRefError) {
      const ref = error.missingRef
      throw new InvalidParameter('schema', 'schema has a $ref that leads outside it, and nothing is loaded', {
        ref,
      })
    }
    throw new InvalidParameter('schema', 'schema is not a valid JSON Schema')
  }
}

function isDraft07(schema: JsonObject | boolean): boolean {
  const draft = isJsonObject(schema) && Object.hasOwn(schema, '$schema') ? schema['$schema'] : undefined
  if (draft === undefined) return false
  const uri = typeof draft === 'string' ? draft.replace(/#$/, '') : ''
  if (uri === 'https://json-schema.org/draft/2020-12/schema') return false
  if (/^https?:\/\/json-schema\.org\/draft-07\/schema$/.test(uri)) return true
  throw new InvalidParameter('schema', 'schema must follow JSON Schema draft 2020-12 or draft-07')
}

/** What the compiler uses for RegExp. It keeps patterns by their text, hence `toString`. */
function regExp(source: string): { test: (text: string) => boolean; toString: () => string } {
  const pattern = compilePattern(source)
  if (pattern === undefined) {
    const sentence = isPattern(source)
      ? 'schema pattern uses an unsupported construct (lookaround, backreference or a repeat above 1000)'
      : 'schema pattern is not a regular expression'
    throw new InvalidParameter('schema', sentence, { pattern: source })
  }
  return { test: pattern.search, toString: () => source }
}

/** Only built, never run: building takes no time to speak of. */
function isPattern(source: string): boolean {
  try {
    return new RegExp(source, 'u').source !== ''
  } catch {
    return false
  }
}

function describe(error: ErrorObject): JsonObject {
  return {
    path: error.instancePath,
    keyword: error.keyword,
    message: error.message ?? '',
    params: snakeCase(error.params),
    schema_path: error.schemaPath,
  }
}

function snakeCase(members: Readonly<Record<string, Json>>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).map(([key, value]) => [
      key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  )
}
