import { InvalidParameter, isJsonObject } from 'ratecard/handler'
import type { Json, JsonObject } from 'ratecard/handler'
import { MAX_DEPTH } from './scan.ts'

/**
 * One level of members named by the way to them: `{"a":[{"b":1}]}` becomes `{"a.0.b":1}`. Empty containers stay, as the
 * values they are. Two ways that read alike are refused instead of one losing its value.
 */
export function flatten(document: Json, separator: string): JsonObject {
  if (!isContainer(document)) {
    throw new InvalidParameter('data', "data must be an object or an array for op 'flatten'")
  }
  const members = new Map<string, Json>()
  function visit(value: Json, way: string): void {
    const inner: readonly (readonly [string, Json])[] = isContainer(value) ? Object.entries(value) : []
    if (inner.length > 0) {
      for (const [key, child] of inner) visit(child, `${way}${separator}${key}`)
    } else if (members.has(way)) {
      throw new InvalidParameter(
        'schema',
        `schema must be another separator: two values flatten to '${shown(way)}'`,
      )
    } else members.set(way, value)
  }
  for (const [key, value] of Object.entries(document)) visit(value, key)
  return Object.fromEntries(members)
}

/**
 * The reverse of `flatten`. A level whose keys are exactly 0 to n - 1 becomes an array, so an object with such keys does
 * not survive the way there and back.
 */
export function unflatten(document: Json, separator: string): Json {
  if (!isJsonObject(document)) {
    throw new InvalidParameter('data', "data must be an object for op 'unflatten'")
  }
  const root: Branch = new Map()
  for (const [way, value] of Object.entries(document)) {
    const keys = way.split(separator)
    if (keys.length > MAX_DEPTH) {
      throw new InvalidParameter('data', `data would be nested deeper than ${MAX_DEPTH} levels`)
    }
    graft(root, keys, value, way)
  }
  return grown(root)
}

/** A level in the making, or the leaf itself. A Map because keys of the caller must not become properties yet. */
type Branch = Map<string, Branch | { readonly leaf: Json }>

function graft(root: Branch, keys: readonly string[], leaf: Json, way: string): void {
  let branch = root
  for (const key of keys.slice(0, -1)) {
    const next = branch.get(key) ?? new Map()
    if (!(next instanceof Map)) throw conflict(way)
    branch.set(key, next)
    branch = next
  }
  const last = keys.at(-1) ?? ''
  if (branch.has(last)) throw conflict(way)
  branch.set(last, { leaf })
}

function grown(branch: Branch): Json {
  const members = [...branch].map(
    ([key, value]) => [key, value instanceof Map ? grown(value) : value.leaf] as const,
  )
  const isArray = branch.size > 0 && members.every((_, index) => branch.has(String(index)))
  if (!isArray) return Object.fromEntries(members)
  return members.toSorted(([a], [b]) => Number(a) - Number(b)).map(([, value]) => value)
}

function conflict(way: string): InvalidParameter {
  return new InvalidParameter('data', `data has a value and a container at the same place: '${shown(way)}'`)
}

function shown(way: string): string {
  return way.length > 80 ? `${way.slice(0, 80)}…` : way
}

function isContainer(value: Json): value is readonly Json[] | JsonObject {
  return Array.isArray(value) || isJsonObject(value)
}
