import { createHash } from 'node:crypto'

/** What JSON can say. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export type JsonObject = { readonly [key: string]: Json }

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** RFC 8785: keys sorted by UTF-16 code units, numbers as ECMAScript prints them, no white space. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (isJsonObject(value)) {
    const members = Object.keys(value)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`)
    return `{${members.join(',')}}`
  }
  return JSON.stringify(value)
}

/** base64url SHA-256 of the canonical form: one short name for one value. */
export function digestJson(value: Json): string {
  return createHash('sha256').update(canonicalJson(value)).digest('base64url')
}

/** The object without its undefined members: JSON has no such value. */
export function compact(members: Readonly<Record<string, Json | undefined>>): JsonObject {
  const kept: Record<string, Json> = {}
  for (const [key, value] of Object.entries(members)) if (value !== undefined) kept[key] = value
  return kept
}
