import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'

/** Keywords of JSON Schema whose value is a schema, a list of schemas, or schemas by name. */
const ONE = ['items', 'additionalProperties', 'contains', 'propertyNames', 'not', 'if', 'then', 'else']
const LIST = ['allOf', 'anyOf', 'oneOf', 'prefixItems']
const NAMED = ['properties', 'patternProperties', 'dependentSchemas', '$defs']

export type ChangeSchema = (schema: JsonObject, name: string) => JsonObject

/** A schema with its direct subschemas changed; each is given the name of the member that it describes. */
export function changeParts(schema: JsonObject, name: string, change: ChangeSchema): JsonObject {
  const changed = (value: Json, name: string): Json => (isJsonObject(value) ? change(value, name) : value)
  const members = Object.entries(schema).map(([key, value]): [string, Json] => {
    if (ONE.includes(key)) return [key, changed(value, name)]
    if (LIST.includes(key) && Array.isArray(value))
      return [key, value.map((each: Json) => changed(each, name))]
    if (!NAMED.includes(key) || !isJsonObject(value)) return [key, value]
    const parts = Object.entries(value).map(([member, part]) => [member, changed(part, member)] as const)
    return [key, Object.fromEntries(parts)]
  })
  return Object.fromEntries(members)
}
