import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import { follow } from './reference.ts'

/** Keywords of OpenAPI 3.0 that JSON Schema does not have, and annotations that take more room than they are worth. */
const DROPPED: ReadonlySet<string> = new Set([
  'nullable',
  'discriminator',
  'xml',
  'externalDocs',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
])
const OF_SCHEMAS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'dependentSchemas',
])

/** A schema of the document as a self-contained JSON Schema (2020-12), with its references under `$defs`. */
export function bundle(openapi: JsonObject, schema: Json): JsonObject {
  const names = new Map<string, string>()
  const definitions: Record<string, Json> = {}
  const nameOf = (reference: string): string => {
    const known = names.get(reference)
    if (known !== undefined) return known
    const wish = (reference.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9_.-]+/g, '_') || 'schema'
    const name = Object.hasOwn(definitions, wish) ? `${wish}_${names.size}` : wish
    names.set(reference, name)
    // Named before it is read: it may refer to itself.
    definitions[name] = true
    definitions[name] = convert(follow(openapi, { $ref: reference }) ?? true)
    return name
  }
  const convert = (value: Json): Json => {
    if (!isJsonObject(value)) return value
    const reference = textAt(value, '$ref')
    if (reference !== undefined) return { $ref: `#/$defs/${nameOf(reference)}` }
    const entries = Object.entries(value).filter(([key]) => !DROPPED.has(key) && !key.startsWith('x-'))
    const converted: Record<string, Json> = {}
    for (const [key, each] of entries) {
      if (OF_SCHEMAS.has(key) && isJsonObject(each))
        converted[key] = Object.fromEntries(
          Object.entries(each).map(([name, below]) => [name, convert(below)]),
        )
      else if (['enum', 'const', 'default', 'required'].includes(key)) converted[key] = each
      else converted[key] = Array.isArray(each) ? each.map(convert) : convert(each)
    }
    return version31(value, converted)
  }
  const root = convert(schema)
  return { ...(isJsonObject(root) ? root : {}), ...(names.size === 0 ? {} : { $defs: definitions }) }
}

/**
 * Rewrites the keywords that OpenAPI 3.0 writes in its own way. A request does not need members that the server sets.
 */
function version31(original: JsonObject, schema: Record<string, Json>): JsonObject {
  for (const [flag, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof schema[flag] !== 'boolean') continue
    const bound = schema[limit]
    const isOpen = schema[flag]
    delete schema[flag]
    if (!isOpen || bound === undefined) continue
    schema[flag] = bound
    delete schema[limit]
  }
  if (Array.isArray(schema['required'])) {
    const set = membersAt(original, 'properties').filter(([, each]) => at(each, 'readOnly') === true)
    schema['required'] = schema['required'].filter((name) => !set.some(([each]) => each === name))
  } else delete schema['required']
  if (original['nullable'] !== true) return schema
  const { type, enum: values } = schema
  return {
    ...schema,
    ...(typeof type === 'string' ? { type: [type, 'null'] } : {}),
    ...(Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : {}),
  }
}

const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })

/** Tells whether a value fits; undefined when the schema cannot be compiled. */
export function validatorOf(schema: JsonObject): ((value: Json) => boolean) | undefined {
  try {
    const validate: ValidateFunction = ajv.compile(schema)
    return (value) => validate(value)
  } catch {
    return undefined
  } finally {
    ajv.removeSchema(schema)
  }
}

/** Deeper than this, optional members are left out. */
const DEEPEST = 4

/**
 * A value for a schema of the document: its example, otherwise the simplest valid one. `optional`: levels with
 * optional members.
 */
export function sampleOf(openapi: JsonObject, given: Json | undefined, optional = DEEPEST): Json | undefined {
  if (optional < -DEEPEST) return undefined
  const schema = follow(openapi, given)
  if (!isJsonObject(schema)) return given === true ? {} : undefined
  const [shown] = [
    schema['example'],
    listAt(schema, 'examples')[0],
    schema['const'],
    schema['default'],
    listAt(schema, 'enum')[0],
  ].filter((value) => value !== undefined && value !== null)
  if (shown !== undefined) return shown
  for (const key of ['oneOf', 'anyOf']) {
    const parts = listAt(schema, key).filter((part) => textAt(part, 'type') !== 'null')
    // These alternatives only relate members to each other: they describe no other value.
    if (
      parts.length === 0 ||
      (schema['properties'] !== undefined && parts.every((part) => at(part, 'properties') === undefined))
    )
      continue
    const { [key]: _, ...rest } = schema
    return merged(openapi, [rest, parts[0] ?? true], optional)
  }
  const parts = listAt(schema, 'allOf')
  if (parts.length > 0) {
    const { allOf: _, ...rest } = schema
    return merged(openapi, [...parts, rest], optional)
  }
  return plainSample(openapi, schema, optional)
}

function merged(openapi: JsonObject, parts: readonly Json[], optional: number): Json | undefined {
  const samples = parts
    .filter(
      (part) =>
        !isJsonObject(part) ||
        Object.keys(part).some((key) => !/^(?:description|title|required|nullable|x-.*)$/.test(key)),
    )
    .map((part) => sampleOf(openapi, part, optional))
  const objects = samples.filter(isJsonObject)
  return objects.length > 0 ? Object.assign({}, ...objects) : samples.find((value) => value !== undefined)
}

function plainSample(openapi: JsonObject, schema: JsonObject, optional: number): Json | undefined {
  const given = schema['type']
  const type = Array.isArray(given) ? given.find((each) => each !== 'null') : given
  if (type === 'array' || (type === undefined && schema['items'] !== undefined)) {
    const item = sampleOf(openapi, schema['items'], optional - 1)
    const least = Number(schema['minItems'] ?? 0)
    return item === undefined || (optional <= 0 && least === 0)
      ? []
      : Array.from({ length: Math.max(1, least) }, () => item)
  }
  if (type === 'object' || (type === undefined && schema['properties'] !== undefined)) {
    const required = new Set(listAt(schema, 'required'))
    return Object.fromEntries(
      membersAt(schema, 'properties').flatMap(([name, member]): [string, Json][] => {
        if ((optional <= 0 || at(member, 'deprecated') === true) && !required.has(name)) return []
        const value = sampleOf(openapi, member, optional - 1)
        return value === undefined ? [] : [[name, value]]
      }),
    )
  }
  if (type === 'integer' || type === 'number') return numberOf(schema)
  if (type === 'boolean') return true
  return type === 'string' ? textOf(schema) : undefined
}

/** The number nearest to one that a schema allows. */
export function numberOf(schema: JsonObject): number {
  const { minimum, maximum, exclusiveMinimum } = schema
  const least =
    typeof exclusiveMinimum === 'number' ? exclusiveMinimum + 1 : typeof minimum === 'number' ? minimum : 1
  return Math.min(Math.max(1, least), typeof maximum === 'number' ? maximum : Infinity)
}

const BY_FORMAT: Readonly<Record<string, string>> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  email: 'ann@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
  ipv4: '192.0.2.1',
  hostname: 'example.com',
}

/** A text that a schema allows, as far as its pattern is a simple one. */
export function textOf(schema: JsonObject): string {
  const { pattern, format, minLength, maxLength } = schema
  const [least, most] = [Number(minLength ?? 0), Number(maxLength ?? Infinity)]
  const byPattern = typeof pattern === 'string' ? ofPattern(pattern) : undefined
  const text = byPattern ?? (typeof format === 'string' ? BY_FORMAT[format] : undefined) ?? 'example'
  return text.padEnd(least, 'x').slice(0, most)
}

/** `^AC[0-9a-f]{32}$` → `AC000…`: the first character of each class, as often as it is required. */
function ofPattern(pattern: string): string | undefined {
  const bare = plainGroups(pattern.replace(/^\^|\$$/g, ''))
  const text = bare.replace(
    /(\[(?:\\.|[^\]\\])+\]|\\.|[^\\()|?*+{}[\]^$])(\{(\d+)(?:,\d*)?\}|[*+?])?/g,
    (_, part: string, quantifier: string | undefined, count: string | undefined) =>
      firstOf(part).repeat(
        count === undefined ? Number(quantifier !== '*' && quantifier !== '?') : Number(count),
      ),
  )
  try {
    return text !== '' && new RegExp(pattern, 'u').test(text) ? text : undefined
  } catch {
    return undefined
  }
}

/** Keeps the first alternative: `(SM|MM)[0-9]` → `SM[0-9]`. */
function plainGroups(pattern: string): string {
  const plain = pattern.replace(/\((?:\?:)?([^()|?]*)(?:\|[^()]*)?\)(?![?*+{])/g, '$1')
  return plain === pattern ? plain : plainGroups(plain)
}

function firstOf(part: string): string {
  const first = part.startsWith('[') ? (/^\[(\\.|[^\\])/.exec(part)?.[1] ?? '') : part
  if (first === '.' || first === '^') return 'a'
  const classes: Readonly<Record<string, string>> = {
    '\\d': '0',
    '\\w': 'a',
    '\\s': ' ',
    '\\S': 'a',
    '\\D': 'a',
  }
  return classes[first] ?? first.replace(/^\\/, '')
}
