import type { Catalog, Route } from '../catalog/catalog.ts'
import { compact, isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { exampleAnswer, isVerbatim } from './answer-example.ts'

/** Levels that the schema describes, enough for the rows of a list. The example shows the rest. */
const DEPTH = 3

const ENVELOPED: JsonObject = { allOf: [{ $ref: '#/components/schemas/Envelope' }] }
const PREVIEW: JsonObject = { $ref: '#/components/schemas/Preview' }

/**
 * The schema of an answer: from the catalog, otherwise derived from the example, in which nothing is required. A
 * preview may omit members at every level.
 */
export function answerSchema(catalog: Catalog, route: Route): JsonObject {
  const { example, responseSchema } = route.operation
  if (route.full !== undefined) return isVerbatim(route) ? {} : PREVIEW
  if (responseSchema !== undefined)
    return isVerbatim(route) ? responseSchema : { ...ENVELOPED, ...responseSchema }
  if (isVerbatim(route)) return verbatimSchema(exampleAnswer(catalog, route))
  const { type, additionalProperties, properties } = objectSchema(
    isJsonObject(example) ? [example] : [],
    DEPTH,
  )
  return compact({ type, additionalProperties, ...ENVELOPED, properties })
}

function verbatimSchema(example: Json | undefined): JsonObject {
  if (example === undefined) return {}
  return isJsonObject(example) ? objectSchema([example], DEPTH) : schemaOf([example], DEPTH)
}

/**
 * The type that all values share, and null: one example cannot show which members are always present. Values of
 * several types have no common type; numbers are never narrowed to integers.
 */
function schemaOf(values: readonly Json[], depth: number): JsonObject {
  const present = values.filter((value) => value !== null)
  const types = new Set(present.map(typeOf))
  const [type] = types
  if (type === undefined || types.size > 1) return {}
  const nullable: JsonObject = { type: [type, 'null'] }
  // Readers expect `items` for every list, even without a description.
  if (depth === 0) return type === 'array' ? { ...nullable, items: {} } : nullable
  if (type === 'array') return { ...nullable, items: schemaOf(present.filter(isArray).flat(), depth - 1) }
  if (type === 'object') return { ...objectSchema(present.filter(isJsonObject), depth), ...nullable }
  return nullable
}

function objectSchema(values: readonly JsonObject[], depth: number): JsonObject {
  const names = [...new Set(values.flatMap((value) => Object.keys(value)))]
  const properties = names.map((name) => {
    const members = values.flatMap((value) => (Object.hasOwn(value, name) ? [value[name] ?? null] : []))
    return [name, schemaOf(members, depth - 1)] as const
  })
  return { type: 'object', additionalProperties: true, properties: Object.fromEntries(properties) }
}

function typeOf(value: Exclude<Json, null>): string {
  return isArray(value) ? 'array' : typeof value
}

function isArray(value: Json): value is readonly Json[] {
  return Array.isArray(value)
}
