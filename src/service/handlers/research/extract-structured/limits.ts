import { isJsonObject, type Json, type JsonObject } from 'ratecard/handler'

const MOST_BYTES = 32 * 1024
const MOST_LEVELS = 12
const MOST_SUBSCHEMAS = 200
/** Members of these are schemas by names of the caller's choice: no level of their own. */
const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
])
const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef', '$recursiveRef'])

/** Why a schema is not worked with, as a sentence about `schema`; nothing is compiled to find out. */
export function refuseSchema(schema: JsonObject): string | undefined {
  if (schema['type'] !== 'object') return 'schema must have "type": "object"'
  let subschemas = 0
  const look = (value: Json, levels: number): string | undefined => {
    const isArray = Array.isArray(value)
    if (!isArray && !isJsonObject(value)) return undefined
    if (levels === 0) return `schema has more than ${MOST_LEVELS} levels`
    // A list of schemas is on the level of its keyword; a list within a list is one deeper.
    if (isArray) return first(value, (each) => look(each, Array.isArray(each) ? levels - 1 : levels))
    subschemas += 1
    if (subschemas > MOST_SUBSCHEMAS) return `schema has more than ${MOST_SUBSCHEMAS} subschemas`
    return first(Object.entries(value), ([keyword, member]) => {
      if (REFERENCES.has(keyword) && typeof member === 'string' && !member.startsWith('#'))
        return 'schema has a $ref that leads outside it, and nothing is loaded'
      if (MAPS.has(keyword) && isJsonObject(member))
        return first(Object.values(member), (each) => look(each, levels - 1))
      return look(member, levels - 1)
    })
  }
  const sentence = look(schema, MOST_LEVELS)
  if (sentence !== undefined) return sentence
  return Buffer.byteLength(JSON.stringify(schema)) > MOST_BYTES
    ? `schema is longer than ${MOST_BYTES} bytes`
    : undefined
}

function first<Item>(items: readonly Item[], look: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const sentence = look(item)
    if (sentence !== undefined) return sentence
  }
  return undefined
}
