import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { isJsonObject } from '../json.ts'
import { suggest } from './issue.ts'
import type { Path } from './source.ts'

/** What ajv says about one place, with the schema and the value it is about. */
export type ShapeFault = ErrorObject<string, Record<string, unknown>>

/** Keys that the schema knows at the place of a fault. */
export function knownKeys(fault: ShapeFault): string[] {
  const schema = fault.parentSchema
  return isJsonObject(schema) && isJsonObject(schema['properties']) ? Object.keys(schema['properties']) : []
}

/** JSON Pointer to path, with list positions as numbers. */
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

/** Sections that hold entries by name. */
const NAMED: ReadonlySet<unknown> = new Set([
  'routes',
  'tools',
  'documents',
  'files',
  'categories',
  'sources',
  'mcp_servers',
])

/** As many levels as one missing value can take away with it. */
const ROUNDS = 8

/**
 * The catalog without what is faulty, so that the rest can be checked too: a route, tool or other named entry goes as a
 * whole, elsewhere the value, or the object that lacks a key or has an unknown one. Undefined when nothing sound is left.
 */
export function soundPart<T>(root: unknown, validate: ValidateFunction<T>): T | undefined {
  const sound: unknown = structuredClone(root)
  for (let round = 0; round < ROUNDS; round += 1) {
    if (validate(sound)) return sound
    const faults = validate.errors ?? []
    // First, for a key that seems to be missing may be one of them.
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
      // Its absence is told already, and the rest of the route can be checked.
      if (named && place.length === 3 && place[2] === 'price' && fault.data === null) {
        remove(sound, place)
        continue
      }
      const path = named && place.length === 1 ? [...place, fault.propertyName ?? ''] : place
      // Without one of its entries a list would have others in their places.
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

/** An unknown key goes; one that is a slip of a known one is read as that, so that its absence is not reported too. */
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
