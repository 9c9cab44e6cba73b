import { InvalidParameter, isJsonObject } from 'ratecard/handler'
import type { Json, JsonObject } from 'ratecard/handler'
import { child, indexOf, parsePointer } from './pointer.ts'

/** Why one operation cannot be done; `applyPatch` adds which one it was. */
class Obstacle extends Error {}

/**
 * Applies a JSON Patch (RFC 6902) and returns a new document: all of it or nothing. Values are never changed in place,
 * so what `copy` inserts stays independent of where it came from. Operations are counted from 0 in messages.
 */
export function applyPatch(document: Json, patch: Json): Json {
  if (!Array.isArray(patch)) {
    throw new InvalidParameter('schema', "schema must be an array of operations for op 'patch'")
  }
  return patch.reduce<Json>((value, operation: Json, index) => {
    try {
      return apply(value, operation)
    } catch (error) {
      const reason =
        error instanceof Obstacle
          ? error.message
          : error instanceof InvalidParameter
            ? 'malformed pointer'
            : undefined
      if (reason === undefined) throw error
      throw new InvalidParameter('schema', `schema cannot be applied: operation ${index}: ${reason}`, {
        operation: index,
      })
    }
  }, document)
}

function apply(document: Json, operation: Json): Json {
  if (!isJsonObject(operation)) throw new Obstacle('it is not an object')
  const path = pointerIn(operation, 'path')
  switch (child(operation, 'op')) {
    case 'add':
      return add(document, path, valueIn(operation))
    case 'remove':
      return remove(document, path)
    case 'replace':
      return replace(document, path, valueIn(operation))
    case 'move': {
      const from = pointerIn(operation, 'from')
      if (from.length < path.length && from.every((token, depth) => token === path[depth])) {
        throw new Obstacle('a value cannot move into itself')
      }
      const moved = find(document, from)
      // moving to the same place changes nothing, and the root could not be removed first
      return from.length === 0 ? document : add(remove(document, from), path, moved)
    }
    case 'copy':
      return add(document, path, find(document, pointerIn(operation, 'from')))
    case 'test':
      if (!equal(find(document, path), valueIn(operation))) {
        throw new Obstacle('the tested value is different')
      }
      return document
    default:
      throw new Obstacle("'op' must be add, remove, replace, move, copy or test")
  }
}

function add(document: Json, path: readonly string[], value: Json): Json {
  return editAt(
    document,
    path,
    () => value,
    (parent, token) => {
      if (!Array.isArray(parent)) return withMember(parent, token, value)
      const index = token === '-' ? parent.length : indexOf(token)
      if (index === undefined || index > parent.length) throw new Obstacle('no such place in the array')
      return parent.toSpliced(index, 0, value)
    },
  )
}

function remove(document: Json, path: readonly string[]): Json {
  find(document, path)
  return editAt(
    document,
    path,
    () => {
      throw new Obstacle('the whole document cannot be removed')
    },
    (parent, token) =>
      Array.isArray(parent)
        ? parent.toSpliced(Number(token), 1)
        : Object.fromEntries(Object.entries(parent).filter(([key]) => key !== token)),
  )
}

function replace(document: Json, path: readonly string[], value: Json): Json {
  find(document, path)
  return editAt(
    document,
    path,
    () => value,
    (parent, token) => withChild(parent, token, value),
  )
}

type Container = readonly Json[] | JsonObject

/** The document with `edit` done to the container that holds the last token, or `whole` where there is no token. */
function editAt(
  document: Json,
  path: readonly string[],
  whole: () => Json,
  edit: (parent: Container, token: string) => Json,
): Json {
  const [token, ...rest] = path
  if (token === undefined) return whole()
  if (!Array.isArray(document) && !isJsonObject(document)) throw new Obstacle('nothing at its path')
  if (rest.length === 0) return edit(document, token)
  return withChild(document, token, editAt(find(document, [token]), rest, whole, edit))
}

function withChild(parent: Container, token: string, value: Json): Json {
  return Array.isArray(parent) ? parent.with(Number(token), value) : withMember(parent, token, value)
}

function withMember(parent: Container, key: string, value: Json): Json {
  return Object.fromEntries(new Map(Object.entries(parent)).set(key, value))
}

function find(document: Json, path: readonly string[]): Json {
  let value: Json = document
  for (const token of path) {
    const next = child(value, token)
    if (next === undefined) throw new Obstacle('nothing at its path')
    value = next
  }
  return value
}

function pointerIn(operation: JsonObject, member: 'path' | 'from'): readonly string[] {
  const pointer = child(operation, member)
  if (typeof pointer !== 'string') throw new Obstacle(`'${member}' must be a JSON Pointer`)
  return parsePointer(pointer)
}

function valueIn(operation: JsonObject): Json {
  const value = child(operation, 'value')
  if (value === undefined) throw new Obstacle("'value' is missing")
  return value
}

/** Equality of RFC 6902 §4.6: the order of members does not count. */
export function equal(a: Json, b: Json): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((element: Json, index) => equal(element, b[index] ?? null))
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const keys = Object.keys(a)
    return (
      keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && equal(a[key] ?? null, b[key] ?? null))
    )
  }
  return a === b
}

/** Applies a JSON Merge Patch (RFC 7396): null removes a member, everything that is no object replaces. */
export function merge(target: Json, patch: Json): Json {
  if (!isJsonObject(patch)) return patch
  const members = new Map(isJsonObject(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) members.delete(key)
    else members.set(key, merge(members.get(key) ?? null, value))
  }
  return Object.fromEntries(members)
}
