import { compact, type JsonObject } from '../json.ts'
import type { Parameter } from './catalog.ts'
import { isOptionalText, valueOf } from './parameter.ts'

/**
 * JSON Schema (2020-12) of an operation’s parameters as one object: what validation enforces and `tools/list` prints.
 * Lists are arrays in it.
 */
export function inputSchema(parameters: readonly Parameter[]): JsonObject {
  const required = parameters.filter((parameter) => parameter.required).map(({ name }) => name)
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: Object.fromEntries(parameters.map((parameter) => [parameter.name, inputOf(parameter)])),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  }
}

function inputOf(parameter: Parameter): JsonObject {
  const { type, list, description, default: otherwise, example, format } = parameter
  if (list === undefined && type !== 'object') {
    const { default: value, ...schema } = parameterSchema(parameter)
    // The empty text as default means "not given": said by leaving it out, for it would break the rules beside it.
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

/** JSON Schema of one parameter as it travels in a path or query, where a list is a text: what OpenAPI prints. */
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
    // Formats as plain patterns, so that any JSON Schema reader can check them.
    pattern: parameter.pattern ?? (format === 'country' && list === undefined ? COUNTRY : undefined),
    format: format === 'date' && !isOptionalText(parameter) ? format : undefined,
    examples: parameter.example === undefined ? undefined : [parameter.example],
  })
}

const COUNTRY = '^[A-Z]{2}$'

/**
 * The input schema with the two rules it does not print: the length of a whole list, and days of the calendar for a date
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
