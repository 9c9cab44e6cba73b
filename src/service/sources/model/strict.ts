import { isJsonObject, type Json, type JsonObject } from 'ratecard/handler'

/**
 * Whether an endpoint can be asked to hold a model to a schema to the letter: every object in it is closed and demands
 * all its members. Of others it would say that they are wrong.
 */
export function isStrict(schema: JsonObject): boolean {
  return within(schema).every(isClosed)
}

function isClosed(schema: JsonObject): boolean {
  const { type, properties = {}, required = [] } = schema
  if (type !== 'object' && !('properties' in schema)) return true
  if (!isJsonObject(properties) || !Array.isArray(required)) return false
  return (
    schema['additionalProperties'] === false &&
    Object.keys(properties).every((name) => required.includes(name))
  )
}

/** Every object in the schema, itself first; the names of members are no keywords. */
function within(schema: JsonObject): JsonObject[] {
  return [
    schema,
    ...Object.entries(schema).flatMap(([keyword, value]) =>
      keyword === 'properties' && isJsonObject(value) ? Object.values(value).flatMap(parts) : parts(value),
    ),
  ]
}

function parts(value: Json): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(parts)
  return isJsonObject(value) ? within(value) : []
}
