import {
  colonTemplate,
  templatesOf,
  type Endpoint,
  type Parameter,
  type Route,
  type ToolEndpoint,
} from '../../catalog/catalog.ts'
import { bodyExample } from '../../catalog/body.ts'
import { inputSchema, parameterSchema } from '../../catalog/parameter.ts'
import { compact, isJsonObject, type Json, type JsonObject } from '../../json.ts'

/** How much a challenge says of its route. */
export interface Detail {
  /** Everything, no descriptions, types and defaults only, or types only. */
  readonly input: 'full' | 'plain' | 'outline' | 'bare'
  /** Levels of the example of the answer, and how many members of its first one; at 0 nothing is said of the answer. */
  readonly levels: number
  readonly members: number
}

/** From the most to the least a challenge can say, for as long as it does not fit the header budget. */
export function* detailsOf({ kind, operation }: Endpoint): Iterable<Detail> {
  yield { input: 'full', levels: 2, members: Infinity }
  // A tool has no header that could become too large.
  if (kind === 'tool') return
  yield { input: 'plain', levels: 2, members: Infinity }
  yield { input: 'plain', levels: 1, members: Infinity }
  yield { input: 'outline', levels: 1, members: Infinity }
  const all = isJsonObject(operation.example) ? Object.keys(operation.example).length : 0
  for (let members = all - 1; members > FEW; members -= 1) yield { input: 'outline', levels: 1, members }
  for (let members = FEW; members >= 0; members -= 1) yield { input: 'bare', levels: 1, members }
  yield { input: 'bare', levels: 0, members: 0 }
}

/** Members of an answer's example that say more than the defaults of the parameters. */
const FEW = 3

/**
 * The bazaar extension: what facilitators list a route by. Schemas are inlined (a `$ref` is refused), examples satisfy
 * them, and a templated path carries the catalog's example, never the placeholder.
 */
export function bazaarExtension(endpoint: Endpoint, detail: Detail): JsonObject {
  return endpoint.kind === 'tool' ? toolExtension(endpoint) : routeExtension(endpoint, detail)
}

function toolExtension({ tool, summary, parameters, operation: { body } }: ToolEndpoint): JsonObject {
  return {
    info: {
      input: {
        type: 'mcp',
        toolName: tool.name,
        description: summary,
        transport: 'streamable-http',
        inputSchema: inputSchema(parameters, body),
      },
    },
    schema: TOOL_SCHEMA,
  }
}

function routeExtension(route: Route, detail: Detail): JsonObject {
  const query = route.parameters.filter((parameter) => parameter.in === 'query')
  const path = route.parameters.filter((parameter) => parameter.in === 'path')
  const { method, body } = route.operation
  const bodyType = body === undefined ? undefined : BODY_TYPES[body.kind]
  return {
    info: {
      input: {
        type: 'http',
        method,
        ...(bodyType === undefined ? {} : { bodyType, body: bodyExample(body, route.parameters) ?? {} }),
        queryParams: exampleValues(query),
        ...(path.length === 0 ? {} : { pathParams: exampleValues(path, String) }),
      },
      ...(detail.levels === 0
        ? {}
        : { output: { type: 'json', example: outputExample(route.operation.example, detail) } }),
    },
    schema: {
      ...(detail.input === 'bare' ? {} : { $schema: 'https://json-schema.org/draft/2020-12/schema' }),
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: { const: 'http' },
            method: { enum: [method] },
            ...(bodyType === undefined
              ? {}
              : { bodyType: { const: bodyType }, body: bodySchema(route, detail) }),
            queryParams: valuesSchema(query, detail),
            ...(path.length === 0 ? {} : { pathParams: pathSchema(path) }),
          },
          required: ['type', 'method', ...(bodyType === undefined ? [] : ['bodyType', 'body'])],
        },
        ...(detail.levels === 0 ? {} : { output: OUTPUT_SCHEMA }),
      },
      required: ['input'],
    },
    ...(templatesOf(route.path).length === 0 ? {} : { routeTemplate: colonTemplate(route.path) }),
  }
}

/** The official form knows these three. */
const BODY_TYPES = { json: 'json', form: 'form-data', text: 'text', bytes: undefined } as const

/** The schema of a whole body may be too long for a header: it is said where everything is. */
function bodySchema({ parameters, operation: { body } }: Route, detail: Detail): JsonObject {
  if (body?.form === 'properties')
    return valuesSchema(
      parameters.filter((parameter) => parameter.in === 'body'),
      detail,
    )
  if (body?.kind === 'text') return { type: 'string' }
  const { $schema: _, ...schema } = body?.schema ?? {}
  return detail.input === 'full' && !JSON.stringify(schema).includes('"$ref"') ? schema : {}
}

const TOOL_SCHEMA: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    input: {
      type: 'object',
      properties: {
        type: { const: 'mcp' },
        toolName: { type: 'string' },
        description: { type: 'string' },
        transport: { enum: ['streamable-http'] },
        inputSchema: { type: 'object' },
      },
      required: ['type', 'toolName', 'inputSchema'],
    },
  },
  required: ['input'],
}

const OUTPUT_SCHEMA: JsonObject = {
  type: 'object',
  properties: { type: { const: 'json' }, example: { type: 'object' } },
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

function valueSchema(parameter: Parameter, { input }: Detail): JsonObject {
  if (input === 'bare') return { type: parameter.type }
  const schema = parameterSchema(parameter)
  const { type, default: value, enum: allowed, description } = schema
  // The empty text as default means "not given": left out, for it would break the other rules of the parameter.
  const given = value === '' ? undefined : value
  if (input === 'outline') return compact({ type, default: given })
  const { minimum, maximum, exclusiveMinimum, minLength } = schema
  return compact({
    type,
    default: given,
    enum: allowed,
    minimum,
    maximum,
    exclusiveMinimum,
    minLength,
    description: input === 'full' ? description : undefined,
  })
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

/** The example's shape in little: the first element of lists, a level or two, short texts. */
function outputExample(example: Json | undefined, { levels, members }: Detail): JsonObject {
  if (!isJsonObject(example)) return {}
  const shown = shrink(example, levels)
  return isJsonObject(shown) ? Object.fromEntries(Object.entries(shown).slice(0, members)) : {}
}

function shrink(value: Json, levels: number): Json {
  if (typeof value === 'string') return Array.from(value).slice(0, LONGEST_TEXT).join('')
  if (Array.isArray(value)) {
    const [first] = value
    return first === undefined || levels === 0 ? [] : [shrink(first, levels - 1)]
  }
  if (!isJsonObject(value)) return value
  if (levels === 0) return {}
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shrink(member, levels - 1)]))
}
