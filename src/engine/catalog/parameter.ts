import { compact, isJsonObject, type Json, type JsonObject, parseJson } from '../json.ts'
import type { Body, List, Parameter, Scalar } from './catalog.ts'
import type { DeclaredParameter } from './schema.ts'

/** Longest text of a parameter unless the catalog sets another limit. */
const LONGEST_TEXT = 2000

/** A declared parameter with its defaults filled in. */
export function compileParameter(
  name: string,
  place: Parameter['in'],
  declared: DeclaredParameter,
): Parameter {
  return {
    name,
    in: place,
    type: declared.type,
    required: place === 'path' || declared.required === true,
    description: declared.description,
    default: declared.default,
    example: declared.example,
    enum: declared.enum,
    aliases: declared.aliases ?? {},
    minimum: declared.minimum,
    maximum: declared.maximum,
    exclusiveMinimum: declared.exclusiveMinimum,
    minLength: declared.minLength,
    maxLength: declared.type === 'string' ? (declared.maxLength ?? LONGEST_TEXT) : undefined,
    pattern: declared.pattern,
    format: declared.format,
    list: declared.list === undefined ? undefined : compileList(declared.list),
    isIdempotencyKey: declared.idempotency_key === true,
  }
}

function compileList(list: NonNullable<DeclaredParameter['list']>): List {
  return {
    items: list.items ?? 'string',
    minItems: list.min_items ?? 1,
    maxItems: list.max_items,
    minimum: list.minimum,
    maximum: list.maximum,
  }
}

/** Origin of values: text from a path, query or form; `body`: the same plus a JSON body; the JSON of a tool call. */
export type Form = 'text' | 'body' | 'json'

/** Whether a value already has its type, so that its text is not parsed. */
export function isTyped(parameter: Parameter | undefined, form: Form): boolean {
  return form === 'json' || (form === 'body' && parameter?.in === 'body')
}

/** A text parameter with an empty default: the empty text means "not given", and no further rule applies to it. */
export function isOptionalText(parameter: Parameter): boolean {
  return (
    parameter.type === 'string' &&
    (parameter.default === '' || (!parameter.required && parameter.default === undefined))
  )
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/

/** Whether a text is an existing calendar day from 1970 to 2100. */
export function isDate(text: string): boolean {
  const match = DATE.exec(text)
  if (match === null) return false
  const [, year, month, day] = match.map(Number)
  if (year === undefined || month === undefined || day === undefined || year < 1970 || year > 2100)
    return false
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

const INTEGER = /^[+-]?\d{1,15}(?:\.0+)?$/
const NUMBER = /^[+-]?(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,2})?$/

/**
 * The value of a text in a path, a query or a default. A text that cannot be parsed stays as it is, and the
 * parameter’s schema refuses it.
 */
export function decode(parameter: Parameter, text: string): Json {
  const { type, list } = parameter
  if (list !== undefined) {
    if (text === '' && isOptionalText(parameter)) return text
    const items = text.split(/[,;|\s]+/).filter((item) => item !== '')
    return list.items === 'integer' ? items.map((item) => numberOf(item, INTEGER)) : items
  }
  switch (type) {
    case 'integer':
      return numberOf(text.trim(), INTEGER, text)
    case 'number':
      return numberOf(text.trim(), NUMBER, text)
    case 'boolean':
      return /^(?:true|1)$/i.test(text.trim()) || (/^(?:false|0)$/i.test(text.trim()) ? false : text)
    case 'object': {
      const value = parseJson(text)
      return isJsonObject(value) ? value : text
    }
    case 'string':
      return text
  }
}

function numberOf(text: string, form: RegExp, otherwise = text): number | string {
  return form.test(text) ? Number(text) : otherwise
}

/** One form for values with the same meaning: aliases, countries in any case, repeated items of a list. */
export function normalize({ format, list, aliases }: Parameter, value: Json): Json {
  if (list !== undefined) {
    if (!Array.isArray(value)) return value
    return [...new Set(format === 'country' ? value.map(normalizeCountry) : value)]
  }
  if (typeof value !== 'string') return value
  if (format === 'country') return normalizeCountry(value)
  if (format === 'date') return value.trim()
  return Object.hasOwn(aliases, value) ? (aliases[value] ?? value) : value
}

/** Upper-cased ISO 3166-1 alpha-2; UK is understood as GB. */
function normalizeCountry(value: Json): Json {
  if (typeof value !== 'string') return value
  // Letters of other alphabets may become two ASCII letters in upper case, but they name no country.
  const code = value.trim().replace(/[a-z]/g, (letter) => letter.toUpperCase())
  return code === 'UK' ? 'GB' : code
}

/** The value of a scalar in the catalog: lists and objects are texts, and a single number is a list of one. */
export function valueOf(parameter: Parameter, written: Scalar): Json {
  const { list, type } = parameter
  const readable = typeof written === 'string' || (typeof written === 'number' && list?.items === 'integer')
  if ((list === undefined && type !== 'object') || !readable) return written
  return normalize(parameter, decode(parameter, String(written)))
}

/** The handler’s argument for a checked default, example or fixed value. */
export function toArgument(parameter: Parameter, written: Scalar): Json {
  return asArgument(parameter, valueOf(parameter, written)) ?? written
}

/** A valid value in the type of the handler's argument; the empty text of a list is the empty list. */
export function asArgument({ list }: Parameter, value: Json): Json | undefined {
  if (value === '' && list !== undefined) return []
  return value ?? undefined
}

/** Whether values of one parameter can be passed to a handler as another. */
export function isPassable(from: Parameter, to: Parameter): boolean {
  if (from.type === to.type) return true
  return from.type === 'integer' && (to.type === 'number' || to.list?.items === 'integer')
}

export function isOfType(type: Parameter['type'], value: unknown): boolean {
  if (type === 'object') return isJsonObject(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

/**
 * JSON Schema (2020-12) of an operation’s parameters as one object: used for validation and published in
 * `tools/list`. Lists are arrays in it, and a whole body is the member `body`.
 */
export function inputSchema(parameters: readonly Parameter[], body?: Body): JsonObject {
  const whole = body?.form === 'whole' ? { body: bodySchema(body) } : {}
  const required = [
    ...parameters.filter((parameter) => parameter.required).map(({ name }) => name),
    ...Object.keys(whole),
  ]
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      ...Object.fromEntries(parameters.map((parameter) => [parameter.name, inputOf(parameter)])),
      ...whole,
    },
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  }
}

/** JSON Schema of a whole body as a JSON value. */
function bodySchema({ kind, schema, mediaType }: Body): JsonObject {
  switch (kind) {
    case 'json': {
      const { $schema: _, ...rest } = schema ?? {}
      return embedSchema(rest, '/properties/body')
    }
    case 'form':
      return { type: 'object', additionalProperties: { type: 'string' } }
    case 'text':
      return { type: 'string', contentMediaType: mediaType }
    case 'bytes':
      return { type: 'string', contentEncoding: 'base64', contentMediaType: mediaType }
  }
}

/** Adapts the references of a schema that is embedded in another document at this JSON Pointer. */
export function embedSchema(schema: JsonObject, pointer: string): JsonObject {
  const move = (value: Json): Json =>
    Array.isArray(value) ? value.map(move) : isJsonObject(value) ? embedSchema(value, pointer) : value
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      const isOwn = key === '$ref' && typeof value === 'string' && /^#(?:\/|$)/.test(value)
      return [key, isOwn ? `#${pointer}${value.slice(1)}` : move(value)]
    }),
  )
}

function inputOf(parameter: Parameter): JsonObject {
  const { type, list, description, default: otherwise, example, format } = parameter
  if (list === undefined && type !== 'object') {
    const { default: value, ...schema } = parameterSchema(parameter)
    // An empty default means "not given". It is omitted, because it would break the other rules.
    return compact({ ...schema, default: value === '' ? undefined : value })
  }
  const shown = {
    default: otherwise === undefined || otherwise === '' ? undefined : valueOf(parameter, otherwise),
    examples: example === undefined ? undefined : [valueOf(parameter, example)],
  }
  if (list === undefined) return compact({ type, description, ...shown })
  const { items, minItems, maxItems, minimum, maximum } = list
  const pattern = format === 'country' ? COUNTRY : undefined
  const item = items === 'integer' ? { minimum, maximum } : { minLength: 1, pattern }
  return compact({
    type: 'array',
    description,
    items: compact({ type: items, ...item }),
    minItems,
    maxItems,
    ...shown,
  })
}

/** JSON Schema of one parameter in a path or query, where a list is a text: published in OpenAPI. */
export function parameterSchema(parameter: Parameter): JsonObject {
  const { list, format } = parameter
  return compact({
    type: parameter.type,
    description: parameter.description,
    default: parameter.default,
    enum: parameter.enum,
    minimum: parameter.minimum,
    maximum: parameter.maximum,
    exclusiveMinimum: parameter.exclusiveMinimum,
    minLength: parameter.minLength,
    maxLength: parameter.maxLength,
    // Formats as plain patterns, so that any JSON Schema validator can check them.
    pattern: parameter.pattern ?? (format === 'country' && list === undefined ? COUNTRY : undefined),
    format: format === 'date' && !isOptionalText(parameter) ? format : undefined,
    examples: parameter.example === undefined ? undefined : [parameter.example],
  })
}

const COUNTRY = '^[A-Z]{2}$'

/**
 * The input schema plus two rules that it does not publish: the total length of a list, and existing days for a date
 * that may be empty.
 */
export function validationSchema(parameter: Parameter): JsonObject {
  const { list, format, maxLength } = parameter
  const { description: _, examples: __, ...schema } = inputOf(parameter)
  return compact({
    ...schema,
    joinedLength: list === undefined ? undefined : maxLength,
    format: format === 'date' && list === undefined ? format : undefined,
  })
}
