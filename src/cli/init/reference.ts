import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, textAt } from '../json-access.ts'

/** More would be a circle. */
const LONGEST_TRAIL = 20

/** What a `$ref` leads to; undefined: in a circle, or to nothing that was read. */
export function follow(openapi: JsonObject, value: Json | undefined): Json | undefined {
  return followTo(openapi, value, LONGEST_TRAIL)
}

function followTo(openapi: JsonObject, value: Json | undefined, steps: number): Json | undefined {
  const reference = textAt(value, '$ref')
  if (reference === undefined) return value
  return steps === 0 ? undefined : followTo(openapi, lookUp(openapi, reference, steps - 1), steps - 1)
}

/** RFC 6901 in a fragment. What is on the way may be a reference itself. */
function lookUp(openapi: JsonObject, reference: string, steps: number): Json | undefined {
  if (reference === '#') return openapi
  if (!reference.startsWith('#/')) return undefined
  const keys = reference.slice(2).split('/')
  return keys.reduce<Json | undefined>((found, key) => {
    const [name, place] = [unescape(key), followTo(openapi, found, steps)]
    return Array.isArray(place) ? place[Number(name)] : at(place, name)
  }, openapi)
}

function unescape(key: string): string {
  const plain = key.replaceAll('~1', '/').replaceAll('~0', '~')
  try {
    return decodeURIComponent(plain)
  } catch {
    return plain
  }
}

/** Members of a schema or a media type whose value is data, which may look like a reference. */
const DATA: ReadonlySet<string> = new Set(['example', 'examples', 'default', 'enum', 'const'])

/** Calls `found` with each reference in a part of a document; members of `properties` are names, not keywords. */
export function forEachReference(value: Json, found: (reference: string) => void, areNames = false): void {
  if (Array.isArray(value)) {
    for (const each of value) forEachReference(each, found)
  } else if (isJsonObject(value)) {
    const reference = value['$ref']
    if (typeof reference === 'string' && !areNames) found(reference)
    for (const [key, each] of Object.entries(value))
      if (areNames || !DATA.has(key)) forEachReference(each, found, !areNames && key === 'properties')
  }
}

/** Why references of a document cannot be followed: each as it stands in the document, with the reason. */
export type BrokenReferences = ReadonlyMap<string, string>

/** `unread` are those whose file was not read, with the reason. */
export function brokenReferences(openapi: JsonObject, unread: BrokenReferences): BrokenReferences {
  const broken = new Map<string, string>()
  forEachReference(openapi, (reference) => {
    if (broken.has(reference) || follow(openapi, { $ref: reference }) !== undefined) return
    broken.set(reference, unread.get(reference) ?? 'leads to nothing')
  })
  return broken
}

/** The first broken reference that a part of a document needs, as a phrase: `pet.yaml, which is not there`. */
export function brokenIn(
  openapi: JsonObject,
  part: Json | undefined,
  broken: BrokenReferences,
): string | undefined {
  if (part === undefined || broken.size === 0) return undefined
  const seen = new Set<string>()
  const open = [part]
  for (let next = open.pop(); next !== undefined; next = open.pop())
    forEachReference(next, (reference) => {
      if (seen.has(reference)) return
      seen.add(reference)
      const target = follow(openapi, { $ref: reference })
      if (target !== undefined) open.push(target)
    })
  const [first] = [...seen].filter((reference) => broken.has(reference))
  return first === undefined ? undefined : `${first}, which ${broken.get(first)}`
}
