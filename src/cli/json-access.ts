import { isJsonObject, parseJson, type Json, type JsonObject } from '../engine/base/json.ts'

/** Undefined if it is not a JSON object. */
export function readObject(text: string): JsonObject | undefined {
  const value = parseJson(text)
  return isJsonObject(value) ? value : undefined
}

/** The value at a path of keys; undefined when missing. */
export function at(value: Json | undefined, ...keys: readonly string[]): Json | undefined {
  return keys.reduce<Json | undefined>(
    (found, key) => (isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined),
    value,
  )
}

export function textAt(value: Json | undefined, ...keys: readonly string[]): string | undefined {
  const found = at(value, ...keys)
  return typeof found === 'string' ? found : undefined
}

export function listAt(value: Json | undefined, ...keys: readonly string[]): readonly Json[] {
  const found = at(value, ...keys)
  return Array.isArray(found) ? found : []
}

export function membersAt(value: Json | undefined, ...keys: readonly string[]): [string, Json][] {
  const found = at(value, ...keys)
  return isJsonObject(found) ? Object.entries(found) : []
}
