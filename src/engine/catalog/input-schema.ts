import { compact, type JsonObject } from '../json.ts'
import type { List, Parameter } from './catalog.ts'
import { parameterSchema, readObject, toArgument } from './parameter.ts'

/** JSON Schema (2020-12) of a tool's arguments: lists are arrays here, and nothing is coerced. */
export function inputSchema(parameters: readonly Parameter[]): JsonObject {
  const required = parameters.filter((parameter) => parameter.required).map(({ name }) => name)
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: Object.fromEntries(
      parameters.map((parameter) => [parameter.name, argumentSchema(parameter)]),
    ),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  }
}

function argumentSchema(parameter: Parameter): JsonObject {
  const { list, type, description } = parameter
  if (list !== undefined) return listSchema(parameter, list)
  if (type === 'object') {
    const [value, example] = [parameter.default, parameter.example].map((text) =>
      text === undefined ? undefined : readObject(text),
    )
    return compact({
      type,
      description,
      default: value,
      examples: example === undefined ? undefined : [example],
    })
  }
  const { default: value, ...schema } = parameterSchema(parameter)
  // The empty text as default means "not given": said by leaving it out, for it would break the rules beside it.
  return compact({ ...schema, default: value === '' ? undefined : value })
}

function listSchema(parameter: Parameter, { items, minItems, maxItems, minimum, maximum }: List): JsonObject {
  const { description, default: value, example, format } = parameter
  const pattern = format === 'country' ? '^[A-Z]{2}$' : undefined
  return compact({
    type: 'array',
    description,
    items: compact(
      items === 'integer' ? { type: items, minimum, maximum } : { type: items, minLength: 1, pattern },
    ),
    minItems,
    maxItems,
    default: value === undefined || value === '' ? undefined : toArgument(parameter, value),
    examples: example === undefined ? undefined : [toArgument(parameter, example)],
  })
}
