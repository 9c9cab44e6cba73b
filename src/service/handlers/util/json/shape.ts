import { isJsonObject } from 'ratecard/handler'
import type { Json, JsonObject } from 'ratecard/handler'

type Kind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

function kindOf(value: Json): Kind {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  const kind = typeof value
  return kind === 'string' || kind === 'number' || kind === 'boolean' ? kind : 'object'
}

/**
 * A JSON Schema (draft 2020-12) that the document satisfies: types, properties, and as required what every object at
 * the same place has. Elements of an array share one schema. No formats, limits or enums are guessed.
 */
export function inferSchema(document: Json): JsonObject {
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...schemaOf([document]) }
}

/** One schema for values that are at the same place. */
function schemaOf(values: readonly Json[]): JsonObject {
  const types = [...new Set(values.map(typeOf))].filter(
    (type, _, all) => type !== 'integer' || !all.includes('number'),
  )
  const objects = values.filter(isJsonObject)
  const arrays = values.filter((value): value is readonly Json[] => Array.isArray(value))
  const elements = arrays.flat()
  return {
    type: types.length === 1 ? (types[0] ?? 'null') : types.toSorted(),
    ...(objects.length > 0 && membersOf(objects)),
    ...(elements.length > 0 && { items: schemaOf(elements) }),
  }
}

function typeOf(value: Json): string {
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : kindOf(value)
}

function membersOf(objects: readonly JsonObject[]): JsonObject {
  const members = new Map<string, Json[]>()
  for (const [key, value] of objects.flatMap((object) => Object.entries(object))) {
    const seen = members.get(key)
    if (seen === undefined) members.set(key, [value])
    else seen.push(value)
  }
  const required = [...members].filter(([, values]) => values.length === objects.length).map(([key]) => key)
  return {
    properties: Object.fromEntries([...members].map(([key, values]) => [key, schemaOf(values)])),
    ...(required.length > 0 && { required }),
  }
}

/** Measures of a document: containers have a depth of their own, so a scalar has depth 0 and `[]` depth 1. */
export function stats(document: Json): JsonObject {
  const types: Record<Kind, number> = { object: 0, array: 0, string: 0, number: 0, boolean: 0, null: 0 }
  const names = new Set<string>()
  let keys = 0
  let longestArray = 0
  let longestString = 0

  function visit(value: Json): number {
    types[kindOf(value)] += 1
    if (typeof value === 'string') longestString = Math.max(longestString, value.length)
    if (Array.isArray(value)) {
      longestArray = Math.max(longestArray, value.length)
      return 1 + deepest(value)
    }
    if (!isJsonObject(value)) return 0
    for (const key of Object.keys(value)) names.add(key)
    keys += Object.keys(value).length
    return 1 + deepest(Object.values(value))
  }

  function deepest(values: readonly Json[]): number {
    return values.reduce<number>((depth, value) => Math.max(depth, visit(value)), 0)
  }

  const depth = visit(document)
  return {
    depth,
    values: Object.values(types).reduce((sum, count) => sum + count, 0),
    types: { ...types },
    keys,
    distinct_keys: names.size,
    longest_array: longestArray,
    longest_string: longestString,
    minified_bytes: Buffer.byteLength(JSON.stringify(document)),
  }
}
