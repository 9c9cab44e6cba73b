import {
  colonTemplate,
  templatesOf,
  type Endpoint,
  type Parameter,
  type Route,
  type ToolEndpoint,
} from '../catalog/catalog.ts'
import { bodyExample, JSON_MEDIA, kindOf } from '../catalog/body.ts'
import { inputOf, inputSchema, parameterSchema } from '../catalog/input-schema.ts'
import { compact, isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { shortenAtWord } from '../base/words.ts'

/**
 * Levels of the schema of the inputs, each without the parts of those before: `full` has everything, `tagged` no
 * dialect of the schema, `limited` no tags, `plain` no limits, `outline` neither choices nor required members, `bare`
 * types only, `shown` nothing but what the example request shows.
 */
const INPUTS = ['full', 'tagged', 'limited', 'plain', 'outline', 'bare', 'shown'] as const

/** How much a challenge contains about its route. */
export interface Detail {
  readonly input: (typeof INPUTS)[number]
  /** How many parameters are described. */
  readonly described: number
  readonly hasIcon: boolean
  /** Levels of the example answer, members of the first level, and members of each further one; at 0 it is omitted. */
  readonly levels: number
  readonly members: number
  readonly row: number
  /** Length of its texts in characters; at 0 the description of the route is its summary alone. */
  readonly text: number
}

/** Whether a challenge contains what this level has. */
export function reaches({ input }: Detail, level: Detail['input']): boolean {
  return INPUTS.indexOf(input) <= INPUTS.indexOf(level)
}

/** Used where no header limits the size: in listings, and for facilitators. */
export const COMPLETE: Detail = {
  input: 'full',
  described: Infinity,
  hasIcon: true,
  levels: 4,
  members: Infinity,
  row: Infinity,
  text: 300,
}

/** What every challenge contains. */
export const LEAST: Detail = {
  input: 'shown',
  described: 0,
  hasIcon: false,
  levels: 0,
  members: 0,
  row: 2,
  text: 0,
}

/**
 * The details of a challenge, from the most to the least: the first that fits the header budget is used. Networks are
 * never left out: stock clients pay what the header offers. Texts that help to choose and to call are kept longer than
 * tags, limits and all of the example but one row.
 */
export function* detailsOf({ kind, operation, parameters }: Endpoint): Iterable<Detail> {
  // A tool has no header that could become too large.
  if (kind === 'tool') return yield COMPLETE
  const all = isJsonObject(operation.example) ? Object.keys(operation.example).length : 0
  const most = {
    input: 'full',
    described: parameters.length,
    hasIcon: true,
    levels: 3,
    members: Infinity,
    row: Infinity,
    text: 40,
  } as const
  for (const row of [Infinity, 4, 2]) yield { ...most, row }
  const row = { ...most, row: 2 }
  for (let members = all - 1; members > 0; members -= 1) yield { ...row, members }
  const single = { ...row, members: 1 }
  for (const input of ['tagged', 'limited', 'plain'] as const) yield { ...single, input }
  // A description is worth more than the icon, which may still fit where the last description did not.
  for (let described = parameters.length; described >= 0; described -= 1)
    for (const hasIcon of [true, false]) yield { ...single, input: 'outline', described, hasIcon }
  const bare = { ...LEAST, input: 'bare', levels: 3 } as const
  yield { ...bare, members: 1, text: 40 }
  for (const text of [40, 0]) yield { ...bare, text }
  yield { ...bare, levels: 0 }
  yield LEAST
}

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
        ...(bodyType === undefined
          ? {}
          : { bodyType, body: bodyExample(body, route.parameters) ?? (bodyType === 'text' ? '' : {}) }),
        queryParams: exampleValues(query),
        ...(path.length === 0 ? {} : { pathParams: exampleValues(path, String) }),
      },
      ...(detail.levels === 0 ? {} : { output: outputOf(route, detail) }),
    },
    schema: {
      ...(reaches(detail, 'full') ? { $schema: 'https://json-schema.org/draft/2020-12/schema' } : {}),
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
            queryParams: valuesSchema(route, 'query', detail),
            ...(path.length === 0 ? {} : { pathParams: valuesSchema(route, 'path', detail) }),
          },
          ...(reaches(detail, 'plain')
            ? { required: ['type', 'method', ...(bodyType === undefined ? [] : ['bodyType', 'body'])] }
            : {}),
        },
        ...(detail.levels === 0
          ? {}
          : {
              output: {
                type: 'object',
                properties: {
                  ...(reaches(detail, 'full') ? { type: { const: outputType(route) } } : {}),
                  example: { type: outputType(route) === 'json' ? 'object' : 'string' },
                },
              },
            }),
      },
      ...(reaches(detail, 'plain') ? { required: ['input'] } : {}),
    },
    ...(templatesOf(route.path).length === 0 ? {} : { routeTemplate: colonTemplate(route.path) }),
  }
}

/** The official form knows these three. */
const BODY_TYPES = { json: 'json', form: 'form-data', text: 'text', bytes: undefined } as const

/** The schema of a whole body may be too long for a header: only the complete form contains it. */
function bodySchema(route: Route, detail: Detail): JsonObject {
  const { body } = route.operation
  if (body?.form === 'properties') return valuesSchema(route, 'body', detail)
  if (body?.kind === 'text')
    return compact({ type: 'string', maxLength: reaches(detail, 'limited') ? body.maxSize : undefined })
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

/** The extension names `json` and `text`, and leaves the other types open; its `format` refines them. */
function outputType({ operation: { response } }: Route): 'json' | 'text' | 'binary' {
  const { mediaType = JSON_MEDIA, stream } = response
  const kind = kindOf(mediaType)
  if (kind === 'json') return kind
  return kind === 'bytes' && !stream && !mediaType.endsWith('xml') ? 'binary' : 'text'
}

function outputOf(route: Route, detail: Detail): JsonObject {
  const { example, response } = route.operation
  const type = outputType(route)
  return type === 'json'
    ? { type, ...(detail.members === 0 ? {} : { example: outputExample(example, detail) }) }
    : compact({ type, format: response.mediaType })
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

/** The parameters of one place. */
function valuesSchema(route: Route, place: Parameter['in'], detail: Detail): JsonObject {
  if (!reaches(detail, 'bare')) return { type: 'object' }
  const { parameters, operation } = route
  const isTyped = place === 'body' && operation.body?.kind === 'json'
  const schemaOf = isTyped ? typedSchema : valueSchema
  const shown = parameters.flatMap((parameter, index): [string, JsonObject][] => {
    const description = index < detail.described ? parameter.description : undefined
    if (parameter.in !== place) return []
    return [[parameter.name, compact({ ...schemaOf(parameter, detail), description })]]
  })
  const required = parameters.flatMap((each) => (each.in === place && each.required ? [each.name] : []))
  return {
    type: 'object',
    properties: Object.fromEntries(shown),
    ...(required.length === 0 ? {} : { required }),
  }
}

function valueSchema(parameter: Parameter, detail: Detail): JsonObject {
  // Path values travel as text, and a probe may put the template's own name there.
  if (parameter.in === 'path') return { type: 'string' }
  if (!reaches(detail, 'outline')) return { type: parameter.type }
  const schema = parameterSchema(parameter)
  const { type, default: value, enum: allowed, minimum, maximum, exclusiveMinimum, minLength } = schema
  return compact({
    type,
    // The empty text as default means "not given": left out, since it would break the other rules of the parameter.
    default: value === '' ? undefined : value,
    enum: reaches(detail, 'plain') ? allowed : undefined,
    ...(reaches(detail, 'limited') ? { minimum, maximum, exclusiveMinimum, minLength } : {}),
    pattern: parameter.list !== undefined && reaches(detail, 'limited') ? schema['pattern'] : undefined,
  })
}

/** The same of a member of a JSON body, in which a list is an array. */
function typedSchema(parameter: Parameter, detail: Detail): JsonObject {
  if (parameter.list === undefined) return valueSchema(parameter, detail)
  const { type, items, minItems, maxItems } = inputOf(parameter)
  return compact({
    type,
    items: reaches(detail, 'plain') ? items : undefined,
    ...(reaches(detail, 'limited') ? { minItems, maxItems } : {}),
  })
}

/**
 * The example shortened: the first element of each list, a limited number of levels and members, short texts, and no
 * empty values.
 */
function outputExample(example: Json | undefined, { levels, members, row: most, text }: Detail): JsonObject {
  if (!isJsonObject(example)) return {}
  const shrink = (value: Json, left: number): Json | undefined => {
    if (typeof value === 'string') return shortenAtWord(value, text)
    if (Array.isArray(value)) {
      const [first] = value
      const shown = first === undefined ? undefined : shrink(first, left - 1)
      return shown === undefined ? undefined : [shown]
    }
    if (!isJsonObject(value)) return value
    if (left <= 0) return undefined
    const shown = shrinkMembers(value, left).slice(0, most)
    return shown.length === 0 ? undefined : Object.fromEntries(shown)
  }
  const shrinkMembers = (value: JsonObject, left: number): [string, Json][] =>
    Object.entries(value).flatMap(([key, member]): [string, Json][] => {
      const shown = shrink(member, left - 1)
      return shown === undefined ? [] : [[key, shown]]
    })
  const shown = shrinkMembers(example, levels)
  // The first list stays to the end: its row says more than what repeats the request.
  const row = shown.findIndex(([, value]) => Array.isArray(value) && isJsonObject(value[0]))
  const before = row < members ? members : members - 1
  return Object.fromEntries(shown.filter((_, index) => index < before || index === row))
}
