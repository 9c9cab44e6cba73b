import { createHash } from 'node:crypto'
import { canonicalJson, Failure, InvalidParameter, isJsonObject } from 'ratecard/handler'
import type { Json, JsonObject, Warning } from 'ratecard/handler'
import type { Parameters } from '../../catalog.ts'
import { diff } from './diff.ts'
import { parseDocument } from './document.ts'
import { flatten, unflatten } from './flat.ts'
import { applyPatch, merge } from './patch.ts'
import { resolve } from './pointer.ts'
import { query } from './query.ts'
import { repair } from './repair.ts'
import { inferSchema, stats } from './shape.ts'
import { fromCsv, toCsv } from './table.ts'
import { validate } from './validation.ts'

export type Request = Parameters['util/json']

/** What one operation gives: its result, members next to it, and what the buyer should know. */
interface Outcome {
  readonly result: Json
  readonly beside?: JsonObject
  readonly warnings?: readonly Warning[]
}

/** In the order of what an operation makes of `schema`: nothing, an option as text, or a second document. */
type Operation =
  | { readonly text: (data: string) => Outcome }
  | { readonly alone: (data: Json) => Outcome }
  | { readonly option: (data: Json, schema: string) => Outcome; readonly fallback?: string }
  | { readonly pair: (data: Json, schema: Json) => Outcome }

const OPERATIONS: Readonly<Record<Request['op'], Operation>> = {
  validate: {
    pair: (data, schema) => {
      const { valid, errors, error_count } = validate(data, schema)
      return { result: valid, beside: { valid, errors, error_count } }
    },
  },
  parse: { alone: (data) => ({ result: data }) },
  format: {
    option: (data, indent) => ({ result: JSON.stringify(data, null, spaces(indent)) }),
    fallback: '2',
  },
  minify: { alone: (data) => ({ result: JSON.stringify(data) }) },
  sort: { alone: (data) => ({ result: canonicalJson(data) }) },
  repair: { text: repair },
  infer_schema: { alone: (data) => ({ result: inferSchema(data) }) },
  query: {
    option: (data, path) => {
      const { nodes, warnings } = query(data, path)
      return { result: nodes, warnings }
    },
  },
  // the empty pointer is the whole document, so nothing is missing
  pointer: { option: (data, pointer) => ({ result: resolve(data, pointer) }), fallback: '' },
  diff: {
    pair: (data, schema) => {
      const patch = diff(data, schema)
      return { result: patch, beside: { equal: patch.length === 0, counts: countsOf(patch) } }
    },
  },
  patch: { pair: (data, schema) => ({ result: applyPatch(data, schema) }) },
  merge: { pair: (data, schema) => ({ result: merge(data, schema) }) },
  flatten: { option: (data, separator) => ({ result: flatten(data, separator) }), fallback: '.' },
  unflatten: { option: (data, separator) => ({ result: unflatten(data, separator) }), fallback: '.' },
  to_csv: { alone: (data) => ({ result: toCsv(data) }) },
  from_csv: { text: (data) => ({ result: fromCsv(data) }) },
  stats: { alone: (data) => ({ result: stats(data) }) },
  hash: { alone: (data) => ({ result: hash(canonicalJson(data)) }) },
}

/** Characters of an answer. Operations of the caller's making can multiply what came in without a limit of their own. */
const MAX_ANSWER = 1_000_000
/** Levels of an answer. Writing and reading it recurse, and on another stack than this thread's. */
const MAX_LEVELS = 200

export interface Performed {
  readonly body: JsonObject
  readonly warnings: readonly Warning[]
}

/** Carries out one request: the same answer for the same request, always. */
export function perform(request: Request): Performed {
  const { result, beside = {}, warnings = [] } = outcomeOf(request)
  if (room(result, room(beside, MAX_ANSWER)) < 0) {
    throw new Failure('answer_too_large', `The result has more than ${MAX_ANSWER} characters`)
  }
  const output = typeof result === 'string' ? result : JSON.stringify(result)
  return {
    body: {
      op: request.op,
      result,
      ...beside,
      input_bytes: Buffer.byteLength(request.data),
      output_bytes: Buffer.byteLength(output),
    },
    warnings,
  }
}

function outcomeOf({ op, data, schema }: Request): Outcome {
  const operation = OPERATIONS[op]
  if ('text' in operation) return withWarnings(operation.text(data), unused(op, schema))
  const document = parseDocument('data', data)
  if ('alone' in operation) {
    return withWarnings(operation.alone(document.value), [...document.warnings, ...unused(op, schema)])
  }
  if (schema === '' && !('fallback' in operation)) {
    throw new InvalidParameter('schema', `schema is required for op '${op}'`)
  }
  if ('option' in operation) {
    return withWarnings(
      operation.option(document.value, schema || (operation.fallback ?? '')),
      document.warnings,
    )
  }
  const second = parseDocument('schema', schema)
  return withWarnings(operation.pair(document.value, second.value), [
    ...document.warnings,
    ...second.warnings,
  ])
}

function withWarnings(outcome: Outcome, warnings: readonly Warning[]): Outcome {
  return { ...outcome, warnings: [...warnings, ...(outcome.warnings ?? [])] }
}

function unused(op: string, schema: string): readonly Warning[] {
  return schema === '' ? [] : [{ code: 'schema_unused', message: `op '${op}' takes no schema` }]
}

function spaces(indent: string): number {
  if (/^[0-8]$/.test(indent)) return Number(indent)
  throw new InvalidParameter('schema', "schema must be an indent from 0 to 8 for op 'format'")
}

function countsOf(patch: readonly JsonObject[]): JsonObject {
  const of = (op: string): number => patch.filter((operation) => operation['op'] === op).length
  return { add: of('add'), remove: of('remove'), replace: of('replace') }
}

function hash(canonical: string): JsonObject {
  return {
    algorithm: 'sha256',
    hex: createHash('sha256').update(canonical).digest('hex'),
    canonical_bytes: Buffer.byteLength(canonical),
  }
}

/** How many of `left` characters remain once the value is written, at least; stops as soon as none do, or too deep. */
function room(value: Json, left: number, levels = MAX_LEVELS): number {
  if (left < 0) return left
  if (typeof value === 'string') return left - value.length - 2
  const isArray = Array.isArray(value)
  if (!isArray && !isJsonObject(value)) return left - 1
  if (levels === 0)
    throw new Failure('answer_too_large', `The result is nested deeper than ${MAX_LEVELS} levels`)
  if (isArray) {
    return value.reduce<number>((rest, element) => room(element, rest, levels - 1), left - 2)
  }
  let rest = left - 2
  for (const [key, member] of Object.entries(value)) {
    if (rest < 0) break
    rest = room(member, rest - key.length - 3, levels - 1)
  }
  return rest
}
