import { fitsParameter, patternError } from '../../engine/catalog/rules/check-parameters.ts'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import type { Draft } from '../route-yaml.ts'
import { numberOf, textOf } from './json-schema.ts'
import { follow } from './reference.ts'

type Place = 'path' | 'query' | 'header' | 'form'

/** A parameter of an OpenAPI operation as a catalog can have it. */
export type Mapped =
  | {
      readonly kind: 'mapped'
      /** The name in the API. */
      readonly wire: string
      readonly place: Place
      readonly declared: JsonObject
      /** Whether the key is repeated for each item of a list. */
      readonly isRepeated: boolean
      /** Whether the example was made from the schema. */
      readonly isGenerated: boolean
      /** Differences from the original. */
      readonly notes: readonly string[]
    }
  | {
      readonly kind: 'left'
      readonly wire: string
      readonly place: string
      readonly required: boolean
      readonly reason: string
    }

export type Kept = Extract<Mapped, { readonly kind: 'mapped' }>

/** A parameter with its name in the catalog. */
export interface Named extends Kept {
  readonly name: string
}

/** The OpenAPI declaration of a parameter or a form member. */
interface Original {
  readonly wire: string
  readonly place: Place
  readonly required: boolean
  /** A Parameter Object: its description, examples and style. */
  readonly about: JsonObject
  readonly schema: Json | undefined
}

/** `given` is a Parameter Object, or a reference to one. */
export function mapParameter(openapi: JsonObject, given: Json): Mapped {
  const parameter = follow(openapi, given)
  const wire = textAt(parameter, 'name') ?? textAt(given, '$ref') ?? '?'
  const place = textAt(parameter, 'in') ?? '?'
  const required = isJsonObject(parameter) && parameter['required'] === true
  const left = (reason: string): Mapped => ({ kind: 'left', wire, place, required, reason })
  if (!isJsonObject(parameter)) return left('is described nowhere')
  if (place !== 'path' && place !== 'query' && place !== 'header')
    return left(`travels as a ${place}, which is not passed on`)
  // A text that holds JSON: the API reads it.
  const schema = parameter['content'] === undefined ? parameter['schema'] : { type: 'string' }
  return map(openapi, { wire, place, required: required || place === 'path', about: parameter, schema })
}

/** The members of a form as the properties of a body. */
export function mapForm(openapi: JsonObject, schema: Json | undefined): Mapped[] {
  const required = new Set(listAt(schema, 'required'))
  return membersAt(follow(openapi, at(schema, 'properties'))).map(([wire, given]): Mapped => {
    const member = follow(openapi, given)
    const isRequired = required.has(wire)
    const about = isJsonObject(member) ? member : {}
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(wire)) {
      const reason = 'has a name that no property of a form can have'
      return { kind: 'left', wire, place: 'form', required: isRequired, reason }
    }
    return map(openapi, { wire, place: 'form', required: isRequired, about, schema: given })
  })
}

/** The parameter in the form that a draft of a route has. */
export function draftOf(name: string, { declared, isGenerated }: Kept): Draft['parameters'][number] {
  return isGenerated ? [name, declared, 'example generated from the schema'] : [name, declared]
}

function map(openapi: JsonObject, { wire, place, required, about, schema: given }: Original): Mapped {
  const left = (reason: string): Mapped => ({ kind: 'left', wire, place, required, reason })
  const plain = plainSchema(openapi, given)
  if (plain === undefined) return left('is neither text, number, boolean nor a list of them')
  const { schema, isList, single } = plain
  const style = textAt(about, 'style')
  if (isList && (style === 'spaceDelimited' || style === 'pipeDelimited'))
    return left(`is a list in the style ${style}, which is not passed on`)
  const isRepeated = isList && (place === 'query' || place === 'form') && about['explode'] !== false
  const shape = isList ? listShape(schema, single) : shapeOf(single)
  if (shape === undefined) return left('is neither text, number, boolean nor a list of them')
  const written = (value: Json | undefined): Json | undefined =>
    isList && (Array.isArray(value) || typeof value === 'number')
      ? [value].flat().map(textOfItem).join(',')
      : value
  const shown = examplesOf(about, schema)
    .map(written)
    .find((value) => fits(shape.declared, value))
  const standard = written(schema['default'])
  const isDefault = !required && fits(shape.declared, standard)
  const made = required && shown === undefined ? generate(shape.declared, single) : undefined
  const description = textAt(about, 'description')?.replace(/\s+/g, ' ').trim() ?? ''
  return {
    kind: 'mapped',
    wire,
    place,
    isRepeated,
    isGenerated: made !== undefined,
    notes: [
      ...shape.notes,
      ...(made?.isLoose === true ? ['is not held to its pattern here, only by the API'] : []),
    ],
    declared: {
      ...(made?.declared ?? shape.declared),
      ...(place !== 'path' && required ? { required: true } : {}),
      ...(isDefault ? { default: standard ?? null } : {}),
      ...(shown === undefined ? {} : { example: shown }),
      ...(description === '' ? {} : { description }),
    },
  }
}

function textOfItem(item: Json): string {
  return typeof item === 'string' ? item : JSON.stringify(item)
}

interface Plain {
  readonly schema: JsonObject
  readonly isList: boolean
  /** The schema of one item of a list; for anything else, the schema itself. */
  readonly single: JsonObject
}

/**
 * The schema of a parameter without the ways in which generators write "or null". A choice of several scalars becomes a
 * text.
 */
function plainSchema(openapi: JsonObject, given: Json | undefined): Plain | undefined {
  const schema = withoutNull(openapi, given ?? { type: 'string' })
  if (schema === undefined) return undefined
  if (typeOf(schema) !== 'array') return { schema, isList: false, single: schema }
  const single = withoutNull(openapi, schema['items'] ?? { type: 'string' })
  return single === undefined ? undefined : { schema, isList: true, single }
}

const SCALARS: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean'])

function withoutNull(openapi: JsonObject, given: Json | undefined, depth = 0): JsonObject | undefined {
  const schema = follow(openapi, given)
  if (!isJsonObject(schema) || depth > 5) return undefined
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    if (schema[key] === undefined) continue
    const parts = listAt(schema, key)
      .map((part) => withoutNull(openapi, part, depth + 1))
      .filter((part) => part !== undefined && part['type'] !== 'null' && Object.keys(part).length > 0)
    const { [key]: _, ...rest } = schema
    const types = new Set(parts.map((part) => part && typeOf(part)))
    const [type] = types.size === 1 ? types : []
    if (key === 'allOf' || parts.length === 1) return Object.assign({}, ...parts, rest)
    const scalars = [...types].filter((each) => SCALARS.has(each))
    const union = type === 'array' ? parts[0] : scalars.length > 0 ? { type: type ?? 'string' } : undefined
    return union === undefined ? undefined : { ...union, ...rest, type: union['type'] ?? 'string' }
  }
  return schema
}

function typeOf({ type, enum: values, items }: JsonObject): string | undefined {
  const types = (Array.isArray(type) ? type : [type]).filter((each) => each !== 'null')
  const [first] = types
  if (types.length > 1) return types.every((each) => SCALARS.has(each)) ? 'string' : undefined
  if (typeof first === 'string') return first
  const [value] = Array.isArray(values) ? values : []
  if (items !== undefined) return 'array'
  return value === undefined || typeof value === 'string'
    ? 'string'
    : typeof value === 'number'
      ? 'number'
      : undefined
}

interface ParameterShape {
  readonly declared: JsonObject
  readonly notes: readonly string[]
}

/** Rules a catalog has no word for: the API still holds them. */
const UNKNOWN = ['exclusiveMaximum', 'multipleOf'] as const

function shapeOf(schema: JsonObject): ParameterShape | undefined {
  const type = typeOf(schema)
  if (type !== 'string' && type !== 'integer' && type !== 'number' && type !== 'boolean') return undefined
  const kind = type === 'integer' ? 'number' : type
  const values = [...new Set(listAt(schema, 'enum').filter((value) => typeof value === kind))]
  const rules = kind === 'number' ? limitsOf(schema) : kind === 'string' ? textRules(schema) : {}
  const unsaid = [
    ...UNKNOWN.filter((key) => schema[key] !== undefined && schema[key] !== false),
    ...(kind === 'string' && schema['pattern'] !== undefined && rules['pattern'] === undefined
      ? ['pattern']
      : []),
  ]
  return {
    declared: { type, ...(values.length > 0 ? { enum: values } : {}), ...rules },
    notes: unsaid.length === 0 ? [] : [`is not held to ${unsaid.join(' and ')} here, only by the API`],
  }
}

/** OpenAPI 3.0 writes an open limit as a flag next to the limit. */
function limitsOf(schema: JsonObject): JsonObject {
  const { minimum, exclusiveMinimum, ...rest } = pick(schema, ['minimum', 'maximum', 'exclusiveMinimum'])
  const open = schema['exclusiveMinimum'] === true ? minimum : exclusiveMinimum
  return {
    ...(open === undefined ? {} : { exclusiveMinimum: open }),
    ...(open === minimum || minimum === undefined ? {} : { minimum }),
    ...rest,
  }
}

function textRules(schema: JsonObject): JsonObject {
  const { minLength: least = 0, maxLength: most } = schema
  const isRange = typeof most !== 'number' || (most > 0 && Number(least) <= most)
  return {
    ...(isRange ? pick(schema, ['minLength', 'maxLength']) : {}),
    ...patternOf(schema),
    ...(schema['format'] === 'date' ? { format: 'date' } : {}),
  }
}

function pick(schema: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(
    keys.flatMap((key) => (typeof schema[key] === 'number' ? [[key, schema[key]] as const] : [])),
  )
}

function patternOf({ pattern }: JsonObject): JsonObject {
  return typeof pattern === 'string' && pattern !== '' && patternError(pattern) === undefined
    ? { pattern }
    : {}
}

/** Most items of a list if the API states no limit. */
const MOST_ITEMS = 20

/** Buyers send a list as one text, separated by commas. */
function listShape(schema: JsonObject, single: JsonObject): ParameterShape | undefined {
  const item = shapeOf(single)
  const type = item?.declared['type']
  if (item === undefined || type === 'boolean') return undefined
  const { minItems, maxItems } = schema
  const most = typeof maxItems === 'number' && maxItems > 0 ? Math.min(maxItems, 1000) : MOST_ITEMS
  const list = {
    max_items: most,
    ...(typeof minItems === 'number' ? { min_items: Math.min(minItems, most) } : {}),
    ...(type === 'integer' ? { items: 'integer', ...pick(single, ['minimum', 'maximum']) } : {}),
  }
  const notes = typeof maxItems === 'number' ? [] : [`takes at most ${most} items: the API names no limit`]
  return { declared: { type: 'string', list }, notes }
}

/** Real values wherever the API shows one, the nearest first. */
function examplesOf(about: JsonObject, schema: JsonObject): Json[] {
  const named = membersAt(about, 'examples').map(([, each]) =>
    isJsonObject(each) ? each['value'] : undefined,
  )
  const shown = [about['example'], ...named, schema['example'], ...listAt(schema, 'examples')]
  return [...shown, schema['default'], listAt(schema, 'enum')[0]].filter((value) => value !== undefined)
}

/** Larger numbers are not read from a query. */
const LARGEST = 1e15

/** Whether `check` takes a value as the default or the example of a parameter. */
function fits(declared: JsonObject, value: Json | undefined): boolean {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return false
  const { type } = declared
  if (value === '' || typeof value !== (type === 'integer' ? 'number' : type)) return false
  return (typeof value !== 'number' || Math.abs(value) < LARGEST) && fitsParameter(declared, value)
}

/** Items of a list: the same one twice counts once. */
function another(item: Json, place: number): string {
  if (typeof item === 'number') return String(item + place)
  return textOfItem(item) + (place === 0 ? '' : String(place + 1))
}

interface Generated {
  readonly declared: JsonObject
  /** Whether the pattern had to go. */
  readonly isLoose: boolean
}

/** The declaration with an example made from its rules. */
function generate(declared: JsonObject, single: JsonObject): Generated {
  const { type, list, pattern, ...rest } = declared
  const least = isJsonObject(list) ? Number(list['min_items'] ?? 1) : 1
  const one = (rules: JsonObject): Json =>
    type === 'boolean' || typeof rules['type'] !== 'string'
      ? true
      : /number|integer/.test(rules['type'])
        ? numberOf(rules)
        : textOf({ ...single, ...rules })
  const item = isJsonObject(list)
    ? one({ type: list['items'] ?? 'string', ...pick(list, ['minimum', 'maximum']) })
    : one(declared)
  const example = isJsonObject(list)
    ? Array.from({ length: Math.max(1, least) }, (_, place) => another(item, place)).join(',')
    : item
  if (type !== 'string' || fits(declared, example))
    return { declared: { ...declared, example }, isLoose: false }
  const { pattern: _, ...unruled } = single
  const free = { type, ...rest }
  return { declared: { ...free, example: textOf({ ...unruled, ...free }) }, isLoose: pattern !== undefined }
}
