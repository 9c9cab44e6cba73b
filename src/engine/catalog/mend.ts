import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { isJsonObject } from '../json.ts'
import { formOf, properName } from './forms.ts'
import type { Declared } from './schema.ts'
import type { Path, SourceDocument } from './source.ts'
import { suggest } from './suggest.ts'

/** What ajv says about one place, with the schema and the value it is about. */
export type ShapeFault = ErrorObject<string, Record<string, unknown>>

export interface Mended {
  /** The catalog as it was most likely meant, so that the rest can be judged too; undefined: nothing is left. */
  readonly declared: Declared | undefined
  /** The same file, found under the mended names. */
  readonly document: SourceDocument
}

/** As many rounds as one slip can hide behind another. */
const ROUNDS = 8

/** Renames misspelt keys, fills in what is missing and takes out what cannot be meant: one slip is told once. */
export function mend(document: SourceDocument, validate: ValidateFunction<Declared>): Mended {
  const root: unknown = structuredClone(document.value)
  const moves = new Moves()
  const moved: SourceDocument = {
    value: document.value,
    has: (path) => document.has(moves.origin(path)),
    at: (path) => document.at(moves.origin(path)),
    atKey: (path) => document.atKey(moves.origin(path)),
    atHome: (path) => document.atHome(moves.origin(path)),
    spelling: (path) => document.spelling(moves.origin(path)),
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    if (validate(root)) return { declared: root, document: moved }
    const faults = validate.errors ?? []
    // Names first, so that a misspelt key is not missed; the others backwards, so that list positions hold.
    for (const fault of faults.filter(isAboutName)) mendName(root, fault, moves)
    for (const fault of faults.filter((each) => !isAboutName(each)).reverse()) mendValue(root, fault, moves)
  }
  return { declared: undefined, document: moved }
}

/** Where in the file a mended path comes from. */
class Moves {
  readonly #moved = new Map<string, Map<string | number, string | number>>()

  origin(path: Path): Path {
    return path.map((key, index) => this.#moved.get(JSON.stringify(path.slice(0, index)))?.get(key) ?? key)
  }

  rename(owner: Path, from: string, to: string): void {
    const names = this.#of(owner)
    names.set(to, names.get(from) ?? from)
  }

  shift(owner: Path, from: number, length: number): void {
    const places = this.#of(owner)
    for (let index = from; index < length - 1; index += 1) {
      places.set(index, places.get(index + 1) ?? index + 1)
    }
  }

  #of(owner: Path): Map<string | number, string | number> {
    const key = JSON.stringify(owner)
    const found = this.#moved.get(key) ?? new Map<string | number, string | number>()
    this.#moved.set(key, found)
    return found
  }
}

function isAboutName(fault: ShapeFault): boolean {
  return fault.keyword === 'additionalProperties' || fault.propertyName !== undefined
}

function mendName(root: unknown, fault: ShapeFault, moves: Moves): void {
  const path = toPath(fault.instancePath, root)
  const owner = valueAt(root, path)
  if (!isRecord(owner)) return
  const name = fault.propertyName ?? String(fault.params['additionalProperty'])
  const meant =
    fault.propertyName === undefined
      ? suggest(name, knownKeys(fault))
      : properName(name, String(fault.params['pattern']))
  if (meant === undefined || Object.hasOwn(owner, meant)) {
    delete owner[name]
    return
  }
  moves.rename(path, name, meant)
  const entries = Object.entries(owner)
  for (const [key] of entries) delete owner[key]
  for (const [key, value] of entries) owner[key === name ? meant : key] = value
}

function mendValue(root: unknown, fault: ShapeFault, moves: Moves): void {
  const path = toPath(fault.instancePath, root)
  if (fault.keyword === 'required') {
    const owner = valueAt(root, path)
    const key = String(fault.params['missingProperty'])
    const schema = isJsonObject(fault.parentSchema) ? fault.parentSchema['properties'] : undefined
    if (isRecord(owner) && !Object.hasOwn(owner, key)) {
      owner[key] =
        key === 'type' ? typeOf(owner) : filler(isJsonObject(schema) ? schema[key] : undefined, key)
    }
    return
  }
  const owner = valueAt(root, path.slice(0, -1))
  const key = path.at(-1)
  if (key === undefined || !isRecord(owner)) return
  if (key === 'type' && fault.keyword === 'enum') owner[key] = typeOf(owner)
  else if (fault.keyword === 'type' && fault.schema === 'object') owner[key] = emptyOf(path)
  else if (Array.isArray(owner)) {
    moves.shift(path.slice(0, -1), Number(key), owner.length)
    owner.splice(Number(key), 1)
  } else delete owner[key]
}

/** A mapping in the place of something else; of a parameter, one that asks nothing of the others. */
function emptyOf(path: Path): object {
  return path.at(-2) === 'parameters' ? { type: 'string', required: true, example: '-' } : {}
}

const TYPES = ['string', 'integer', 'number', 'boolean']
const TEXT_KEYS = ['list', 'pattern', 'format', 'minLength', 'maxLength', 'aliases']

/** The type a parameter was most likely meant to have. */
function typeOf(parameter: Record<string | number, unknown>): string {
  const written = parameter['type']
  const near = typeof written === 'string' ? suggest(written, TYPES) : undefined
  if (near !== undefined) return near
  if (TEXT_KEYS.some((key) => key in parameter)) return 'string'
  const values = ['default', 'example', 'minimum', 'maximum'].map((key) => parameter[key])
  const value = values.find((each) => each !== undefined)
  if (typeof value === 'boolean') return 'boolean'
  if (typeof value !== 'number') return 'string'
  return values.every((each) => each === undefined || Number.isInteger(each)) ? 'integer' : 'number'
}

/** A value that fits, for a key that is missing. */
function filler(schema: unknown, key: string): unknown {
  if (key === 'price') return 'free'
  if (!isJsonObject(schema)) return '-'
  if (schema['const'] !== undefined) return schema['const']
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  if (typeof schema['pattern'] === 'string') return formOf(schema['pattern'])?.example ?? '-'
  switch (schema['type']) {
    case 'integer':
      return schema['maximum'] ?? schema['minimum'] ?? 1
    case 'array':
      return [filler(schema['items'], key)]
    case 'object':
      return {}
    default:
      return '-'
  }
}

/** Keys that the schema knows at the place of a fault. */
export function knownKeys(fault: ShapeFault): string[] {
  const schema = fault.parentSchema
  return isJsonObject(schema) && isJsonObject(schema['properties']) ? Object.keys(schema['properties']) : []
}

function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => {
    if (Array.isArray(value)) return value[Number(key)]
    return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }, root)
}

function isRecord(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null
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
      value = valueAt(value, [step])
      return step
    })
}
