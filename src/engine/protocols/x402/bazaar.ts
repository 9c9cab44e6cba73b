import { fillPath, templatesOf, type Parameter, type Route } from '../../catalog/catalog.ts'
import { parameterSchema } from '../../catalog/parameter.ts'
import { isJsonObject, type Json, type JsonObject } from '../../json.ts'

/** How much a challenge says of its route; less each time it does not fit the header budget. */
export type Detail = 'full' | 'plain' | 'outline'

/**
 * The bazaar extension: what facilitators list a route by. Schemas are inlined (a `$ref` is refused), examples satisfy
 * them, and a templated path carries the catalog's example, never the placeholder.
 */
export function bazaarExtension(route: Route, detail: Detail): JsonObject {
  const query = route.parameters.filter((parameter) => parameter.in === 'query')
  const path = route.parameters.filter((parameter) => parameter.in === 'path')
  return {
    info: {
      input: {
        type: 'http',
        method: 'GET',
        queryParams: exampleValues(query),
        ...(path.length === 0 ? {} : { pathParams: exampleValues(path, String) }),
      },
      output: { type: 'json', example: outputExample(route.operation.example, detail) },
    },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: { const: 'http' },
            method: { enum: ['GET'] },
            queryParams: valuesSchema(query, detail),
            ...(path.length === 0 ? {} : { pathParams: pathSchema(path) }),
          },
          required: ['type', 'method'],
        },
        output: {
          type: 'object',
          properties: { type: { type: 'string' }, example: { type: 'object' } },
          required: ['type'],
        },
      },
      required: ['input'],
    },
    ...(templatesOf(route.path).length === 0
      ? {}
      : { routeTemplate: route.path.replace(/\{([^}]*)\}/g, ':$1') }),
  }
}

/** The path with every template filled from its parameter's example. */
export function examplePath(route: Route): string {
  return fillPath(route.path, (name) => {
    const parameter = route.parameters.find((each) => each.name === name)
    return String(parameter?.example ?? name)
  })
}

/** What a probe should send: required parameters, and those that have an example. */
function exampleValues(
  parameters: readonly Parameter[],
  spell: (value: Json) => Json = (value) => value,
): JsonObject {
  const given = parameters.flatMap((parameter): [string, Json][] => {
    const value = parameter.example ?? (parameter.required ? parameter.default : undefined)
    return value === undefined ? [] : [[parameter.name, spell(value)]]
  })
  return Object.fromEntries(given)
}

function valuesSchema(parameters: readonly Parameter[], detail: Detail): JsonObject {
  const required = parameters.filter((parameter) => parameter.required).map(({ name }) => name)
  return {
    type: 'object',
    properties: Object.fromEntries(
      parameters.map((parameter) => [parameter.name, valueSchema(parameter, detail)]),
    ),
    ...(required.length === 0 ? {} : { required }),
  }
}

function valueSchema(parameter: Parameter, detail: Detail): JsonObject {
  const { examples: _, description, maxLength, pattern, ...schema } = withoutEmptyDefault(parameter)
  if (detail === 'full') return { ...schema, ...(description === undefined ? {} : { description }) }
  if (detail === 'plain') return schema
  const { type, default: value } = schema
  return { ...(type === undefined ? {} : { type }), ...(value === undefined ? {} : { default: value }) }
}

/** The empty text as default means "not given": said by leaving it out, for it would break the rules beside it. */
function withoutEmptyDefault(parameter: Parameter): JsonObject {
  const { default: value, ...schema } = parameterSchema(parameter)
  return value === undefined || value === '' ? schema : { ...schema, default: value }
}

/** Path values travel as text, and a probe may put the template's own name there. */
function pathSchema(parameters: readonly Parameter[]): JsonObject {
  return {
    type: 'object',
    properties: Object.fromEntries(parameters.map(({ name }) => [name, { type: 'string' }])),
    required: parameters.map(({ name }) => name),
  }
}

const LONGEST_TEXT = 40

/** The example's shape in little: the first element of lists, two levels, short texts. */
function outputExample(example: Json | undefined, detail: Detail): JsonObject {
  if (!isJsonObject(example)) return {}
  const levels = detail === 'outline' ? 1 : 2
  const shown = shrink(example, levels)
  return isJsonObject(shown) ? shown : {}
}

function shrink(value: Json, levels: number): Json {
  if (typeof value === 'string') return [...value].slice(0, LONGEST_TEXT).join('')
  if (Array.isArray(value)) {
    const [first] = value
    return first === undefined || levels === 0 ? [] : [shrink(first, levels - 1)]
  }
  if (!isJsonObject(value)) return value
  if (levels === 0) return {}
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shrink(member, levels - 1)]))
}
