import { isJsonObject, type Json, type JsonObject } from '../../engine/internal.ts'
import { listAt, membersAt, textAt } from '../json-access.ts'
import { follow, snake } from './openapi.ts'

/** A parameter of an OpenAPI operation as a catalog can have it. */
export type Mapped =
  | {
      readonly kind: 'mapped'
      /** As the API calls it. */
      readonly wire: string
      readonly name: string
      readonly place: 'path' | 'query'
      readonly declared: JsonObject
      /** What is otherwise than in the original. */
      readonly notes: readonly string[]
    }
  | { readonly kind: 'left'; readonly wire: string; readonly required: boolean; readonly reason: string }

export function mapParameter(openapi: JsonObject, given: Json): Mapped {
  const parameter = follow(openapi, given)
  const wire = textAt(parameter, 'name') ?? textAt(given, '$ref') ?? '?'
  const place = textAt(parameter, 'in')
  const required = isJsonObject(parameter) && parameter['required'] === true
  const left = (reason: string): Mapped => ({ kind: 'left', wire, required, reason })
  if (!isJsonObject(parameter)) return left('is described in another file')
  if (place !== 'path' && place !== 'query') return left(`travels as a ${place}, which is not passed on`)
  const name = snake(wire)
  if (name === '') return left('has no letter in its name')
  const plain = plainSchema(openapi, parameter['schema'])
  if (plain === undefined) return left('is neither text, number, boolean nor a list of them')
  const { schema, isList, single } = plain
  const joined = isList && (place === 'path' || parameter['explode'] === false)
  const shape = joined ? listShape(schema, single) : shapeOf(isList ? single : schema)
  if (shape === undefined) return left('is neither text, number, boolean nor a list of them')
  const notes = [
    ...(isList && !joined ? ['takes one value, for a proxy does not repeat a parameter'] : []),
    ...shape.notes,
  ]
  const [example, preset] = [exampleOf(parameter, schema), schema['default']]
  const fits = (value: Json | undefined): value is string | number | boolean =>
    typeof value === (shape.declared['type'] === 'integer' ? 'number' : shape.declared['type'])
  const spelt = (value: Json | undefined): Json | undefined =>
    Array.isArray(value) ? (joined ? value.join(',') : value[0]) : value
  const [shown, standard] = [spelt(example), spelt(preset)]
  const isDefault = place === 'query' && !required && fits(standard)
  return {
    kind: 'mapped',
    wire,
    name,
    place,
    notes,
    declared: {
      ...shape.declared,
      ...(place === 'query' && required ? { required: true } : {}),
      ...(isDefault ? { default: standard } : {}),
      ...(fits(shown) && shown !== '' ? { example: shown } : {}),
      ...describe(textAt(parameter, 'description')),
    },
  }
}

function describe(description: string | undefined): JsonObject {
  const text = description?.replace(/\s+/g, ' ').trim() ?? ''
  return text === '' ? {} : { description: text }
}

interface Plain {
  readonly schema: JsonObject
  readonly isList: boolean
  /** What one item of a list is; of anything else, itself. */
  readonly single: JsonObject
}

/** The schema without the ways in which generators write "or null". */
function plainSchema(openapi: JsonObject, given: Json | undefined): Plain | undefined {
  const schema = withoutNull(openapi, follow(openapi, given))
  if (schema === undefined) return undefined
  if (typeOf(schema) !== 'array') return { schema, isList: false, single: schema }
  const single = withoutNull(openapi, follow(openapi, schema['items']))
  return single === undefined ? undefined : { schema, isList: true, single }
}

function withoutNull(openapi: JsonObject, schema: Json | undefined): JsonObject | undefined {
  if (!isJsonObject(schema)) return undefined
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    if (schema[key] === undefined) continue
    const parts = listAt(schema, key).map((part) => follow(openapi, part))
    const real = parts.filter((part) => textAt(part, 'type') !== 'null')
    const [only] = real
    if (real.length !== 1 || !isJsonObject(only)) return undefined
    const { [key]: _, ...rest } = schema
    return { ...only, ...rest }
  }
  return schema
}

function typeOf({ type, enum: values }: JsonObject): string | undefined {
  const types = (Array.isArray(type) ? type : [type]).filter((each) => each !== 'null')
  if (types.length === 1 && typeof types[0] === 'string') return types[0]
  const [first] = Array.isArray(values) ? values : []
  return type === undefined && typeof first === 'string' ? 'string' : undefined
}

interface ParameterShape {
  readonly declared: JsonObject
  readonly notes: readonly string[]
}

const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum'] as const
const TEXTS = ['minLength', 'maxLength'] as const
/** Rules a catalog has no word for: the API still holds them. */
const UNKNOWN = ['exclusiveMaximum', 'multipleOf'] as const

function shapeOf(schema: JsonObject): ParameterShape | undefined {
  const type = typeOf(schema)
  if (type !== 'string' && type !== 'integer' && type !== 'number' && type !== 'boolean') return undefined
  const kind = type === 'integer' ? 'number' : type
  const values = listAt(schema, 'enum').filter((value) => typeof value === kind)
  const numbers = kind === 'number' ? limitsOf(schema) : {}
  const texts = kind === 'string' ? { ...pick(schema, TEXTS), ...patternOf(schema), ...formatOf(schema) } : {}
  const unsaid = [
    ...UNKNOWN.filter((key) => schema[key] !== undefined && schema[key] !== false),
    ...(kind === 'string' && schema['pattern'] !== undefined && texts['pattern'] === undefined
      ? ['pattern']
      : []),
  ]
  return {
    declared: { type, ...(values.length > 0 ? { enum: values } : {}), ...numbers, ...texts },
    notes: unsaid.length === 0 ? [] : [`is not held to ${unsaid.join(' and ')} here, only by the API`],
  }
}

/** OpenAPI 3.0 writes an open limit as a flag next to the limit. */
function limitsOf(schema: JsonObject): JsonObject {
  const { minimum, ...rest } = pick(schema, NUMBERS)
  if (schema['exclusiveMinimum'] === true && minimum !== undefined)
    return { ...rest, exclusiveMinimum: minimum }
  return minimum === undefined ? rest : { minimum, ...rest }
}

function pick(schema: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(
    keys.flatMap((key) => (typeof schema[key] === 'number' ? [[key, schema[key]] as const] : [])),
  )
}

function patternOf({ pattern }: JsonObject): JsonObject {
  if (typeof pattern !== 'string' || pattern === '') return {}
  try {
    new RegExp(pattern, 'u')
    return { pattern }
  } catch {
    return {}
  }
}

function formatOf({ format }: JsonObject): JsonObject {
  return format === 'date' ? { format } : {}
}

/** As many as a list may have where the API does not say. */
const MOST_ITEMS = 20

/** A list travels as one text, separated by commas. */
function listShape(schema: JsonObject, single: JsonObject): ParameterShape | undefined {
  const item = shapeOf(single)
  const type = item?.declared['type']
  if (item === undefined || type === 'boolean') return undefined
  const { minItems, maxItems } = schema
  const most = typeof maxItems === 'number' ? Math.min(maxItems, 1000) : MOST_ITEMS
  const limits = type === 'integer' ? pick(single, ['minimum', 'maximum']) : {}
  const list = {
    max_items: most,
    ...(typeof minItems === 'number' ? { min_items: minItems } : {}),
    ...(type === 'integer' ? { items: 'integer' } : {}),
    ...limits,
  }
  const notes = typeof maxItems === 'number' ? [] : [`takes at most ${most} items: the API names no limit`]
  return { declared: { type: 'string', list }, notes }
}

/** A real value wherever the API shows one. */
function exampleOf(parameter: JsonObject, schema: JsonObject): Json | undefined {
  const named = membersAt(parameter, 'examples').map(([, each]) =>
    isJsonObject(each) ? each['value'] : undefined,
  )
  const shown = [parameter['example'], ...named, schema['example'], ...listAt(schema, 'examples')]
  return [...shown, schema['default'], listAt(schema, 'enum')[0]].find((value) => value !== undefined)
}
