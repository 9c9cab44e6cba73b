import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { isJsonObject } from '../base/json.ts'
import { suggest } from './issue.ts'
import type { Path } from './yaml-document.ts'

/** An error of ajv, with its schema and value. */
export type ShapeFault = ErrorObject<string, Record<string, unknown>>

/** Keys that the schema allows at the position of an error. */
export function knownKeys(fault: ShapeFault): string[] {
  const schema = fault.parentSchema
  return isJsonObject(schema) && isJsonObject(schema['properties']) ? Object.keys(schema['properties']) : []
}

/** Converts a JSON Pointer to a path, with list positions as numbers. */
export function toPath(pointer: string, root: unknown): Path {
  let value = root
  return pointer
    .split('/')
    .slice(1)
    .map((part) => {
      const key = part.replace(/~1/g, '/').replace(/~0/g, '~')
      const step = Array.isArray(value) ? Number(key) : key
      value = Array.isArray(value) ? value[Number(key)] : isJsonObject(value) ? value[key] : undefined
      return step
    })
}

/** Sections whose entries have names. */
const NAMED: ReadonlySet<unknown> = new Set([
  'routes',
  'tools',
  'documents',
  'files',
  'categories',
  'sources',
  'mcp_servers',
])

/** The number of levels that one missing value can invalidate. */
const ROUNDS = 8

/**
 * The catalog without its invalid parts, so that the rest can be checked too: removes a route, tool or other named
 * entry as a whole, elsewhere the value, or the object that lacks a key or has an unknown one. Undefined when
 * nothing valid remains.
 */
export function validPart<T>(root: unknown, validate: ValidateFunction<T>): T | undefined {
  const sound: unknown = structuredClone(root)
  for (let round = 0; round < ROUNDS; round += 1) {
    if (validate(sound)) return sound
    const faults = validate.errors ?? []
    // Unknown keys come first: one of them may be a misspelling of a missing key.
    const unknown = faults.filter(
      ({ keyword, instancePath }) => keyword === 'additionalProperties' && instancePath !== '',
    )
    for (const fault of unknown) {
      const key = String(fault.params['additionalProperty'])
      rename(sound, [...toPath(fault.instancePath, sound), key], suggest(key, knownKeys(fault)))
    }
    if (unknown.length > 0) continue
    for (const fault of faults) {
      const place = toPath(fault.instancePath, sound)
      const named = NAMED.has(place[0])
      // The missing price is reported already, and the rest of the route can be checked.
      if (named && place.length === 3 && place[2] === 'price' && fault.data === null) {
        remove(sound, place)
        continue
      }
      const path = named && place.length === 1 ? [...place, fault.propertyName ?? ''] : place
      // Removing one entry of a list would shift the positions of the others.
      const list = path.findIndex((key) => typeof key === 'number')
      const key = named ? 2 : list < 0 ? path.length : list
      if (!isRecord(sound) || key === 0) return undefined
      remove(sound, path.slice(0, key))
      // No other part refers to it.
      sound['service'] ??= { name: '-', version: '-' }
    }
  }
  return undefined
}

/** Removes an unknown key, or renames a misspelt one, so that its absence is not reported too. */
function rename(root: unknown, path: Path, known: string | undefined): void {
  const owner = path
    .slice(0, -1)
    .reduce<unknown>((value, step) => (isRecord(value) ? value[step] : undefined), root)
  const key = path.at(-1) ?? ''
  if (!isRecord(owner)) return
  if (known !== undefined && !Object.hasOwn(owner, known)) owner[known] = owner[key]
  remove(root, path)
}

function remove(root: unknown, path: Path): void {
  const owner = path
    .slice(0, -1)
    .reduce<unknown>((value, step) => (isRecord(value) ? value[step] : undefined), root)
  if (isRecord(owner)) delete owner[path.at(-1) ?? '']
}

function isRecord(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
