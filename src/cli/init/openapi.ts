import { parse } from 'yaml'
import { isJsonObject, type Json, type JsonObject } from '../../engine/index.ts'
import { at, textAt } from '../json-access.ts'

export type ReadOpenapi =
  | { readonly kind: 'document'; readonly openapi: JsonObject }
  /** In words that go on after the name of the file. */
  | { readonly kind: 'fault'; readonly sentence: string }

/** Reads OpenAPI 3.0 or 3.1, written as JSON or YAML. */
export function readOpenapi(text: string): ReadOpenapi {
  const openapi = readText(text)
  if (!isJsonObject(openapi)) return { kind: 'fault', sentence: 'is neither a JSON nor a YAML object' }
  const version = openapi['openapi']
  if (typeof version === 'string' && /^3\.[01]\b/.test(version)) return { kind: 'document', openapi }
  const found = openapi['swagger'] ?? version
  const said = typeof found === 'string' ? `is version ${found}` : 'names no version under "openapi"'
  return {
    kind: 'fault',
    sentence: `${said}: OpenAPI 3.0 and 3.1 are read; converters make one of the other`,
  }
}

function readText(text: string): unknown {
  try {
    return /^\s*\{/.test(text) ? JSON.parse(text) : parse(text)
  } catch {
    return undefined
  }
}

/** More would be a circle. */
const LONGEST_TRAIL = 20

/** What a `$ref` into the same document leads to; undefined: into another file, in a circle, or to nothing. */
export function follow(openapi: JsonObject, value: Json | undefined): Json | undefined {
  let found = value
  for (let step = 0; step < LONGEST_TRAIL; step += 1) {
    const reference = textAt(found, '$ref')
    if (reference === undefined) return found
    if (!reference.startsWith('#/')) return undefined
    const keys = reference.slice(2).split('/')
    found = at(
      openapi,
      ...keys.map((key) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')),
    )
  }
  return undefined
}
