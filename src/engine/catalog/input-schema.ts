import { compact, isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import type { Body, List, Parameter } from './catalog.ts'

/** A text parameter with an empty default: the empty text means "not given", and no further rule applies to it. */
export function isOptionalText({
  type,
  required,
  default: otherwise,
}: Pick<Parameter, 'type' | 'required' | 'default'>): boolean {
  return type === 'string' && (otherwise === '' || (!required && otherwise === undefined))
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

/** JSON Schema of a whole body as a JSON value. JSON Schema has no keyword for the size of an object. */
function bodySchema(body: Body): JsonObject {
  const { kind, schema, mediaType, maxSize } = body
  switch (kind) {
    case 'json': {
      const { $schema: _, description, ...rest } = schema ?? {}
      const said = typeof description === 'string' ? [sentence(description)] : []
      return { ...embedSchema(rest, '/properties/body'), description: [...said, sizeLimit(body)].join(' ') }
    }
    case 'form':
      return {
        type: 'object',
        description: sizeLimit(body),
        additionalProperties: { type: 'string' },
      }
    case 'text':
      return { type: 'string', contentMediaType: mediaType, maxLength: maxSize }
    case 'bytes': {
      const maxLength = 4 * Math.ceil(maxSize / 3)
      return { type: 'string', contentEncoding: 'base64', contentMediaType: mediaType, maxLength }
    }
  }
}

/** The largest body that is taken, as a sentence. */
export function sizeLimit({ maxSize }: Body): string {
  return `At most ${maxSize} bytes.`
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
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

/** JSON Schema of one parameter as a JSON value, where a list is an array. */
export function inputOf(parameter: Parameter): JsonObject {
  const { type, list, description, default: otherwise, values, format } = parameter
  if (list === undefined && type !== 'object') {
    const { default: value, ...schema } = parameterSchema(parameter)
    // An empty default means "not given". It is omitted, because it would break the other rules.
    return compact({ ...schema, default: value === '' ? undefined : value })
  }
  const shown = {
    default: otherwise === '' ? undefined : values.default,
    examples: values.example === undefined ? undefined : [values.example],
  }
  if (list === undefined) return compact({ type, description, ...shown })
  const { items, minItems, maxItems, minimum, maximum } = list
  const item =
    items === 'integer'
      ? { minimum, maximum }
      : format === 'country'
        ? { minLength: 1, pattern: COUNTRY }
        : { minLength: 1, maxLength: parameter.maxLength, pattern: LIST_ITEM }
  const length = joinedLength(parameter)
  const together = length === undefined ? [] : [`At most ${length} characters together.`]
  const said = [...(description === undefined ? [] : [description]), ...together]
  return compact({
    type: 'array',
    description: said.length < 2 ? said[0] : said.map(sentence).join(' '),
    items: compact({ type: items, ...item }),
    minItems,
    maxItems,
    ...shown,
  })
}

/**
 * Most characters of all items of a list with one separator between them; undefined: no list has more. An array of a
 * body has no such limit: it was never one text.
 */
function joinedLength({ list, format, maxLength, in: place }: Parameter): number | undefined {
  if (list === undefined || maxLength === undefined || place === 'body') return undefined
  const digits = [list.minimum, list.maximum].map((limit) => String(limit ?? Number.MIN_SAFE_INTEGER).length)
  const longest =
    list.items === 'integer' ? Math.max(...digits) : format === 'country' ? COUNTRY_LENGTH : maxLength
  return list.maxItems * (longest + 1) - 1 > maxLength ? maxLength : undefined
}

const COUNTRY_LENGTH = 2

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
    pattern:
      list === undefined
        ? (parameter.pattern ?? (format === 'country' ? COUNTRY : undefined))
        : listText(list),
    format: format === 'date' && !isOptionalText(parameter) ? format : undefined,
    examples: parameter.example === undefined ? undefined : [parameter.example],
  })
}

const COUNTRY = '^[A-Z]{2}$'

/** What separates the items of a list that is written as one text, for a class of characters. */
export const SEPARATORS = ',;|\\s'
export const NO_SEPARATORS = 'without commas, semicolons, vertical bars or white space'

/** A text of as many items as a list takes. */
function listText({ minItems, maxItems }: List): string {
  const [between, item] = [`[${SEPARATORS}]`, `[^${SEPARATORS}]+`]
  const more = `(?:${between}+${item}){${Math.max(0, minItems - 1)},${maxItems - 1}}`
  const all = `${item}${more}${between}*`
  return `^${between}*${minItems === 0 ? `(?:${all})?` : all}$`
}

/** An item never contains a separator: an upstream that receives the list as one text would read several items. */
const LIST_ITEM = `^[^${SEPARATORS}]+$`

/**
 * The input schema plus two rules that JSON Schema cannot express: the total length of a list, and existing days for a
 * date that may be empty.
 */
export function validationSchema(parameter: Parameter): JsonObject {
  const { list, format } = parameter
  const { description: _, examples: __, ...schema } = inputOf(parameter)
  return compact({
    ...schema,
    joinedLength: joinedLength(parameter),
    format: format === 'date' && list === undefined ? format : undefined,
  })
}
