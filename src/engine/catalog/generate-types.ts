import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import type { Body, Catalog, Operation, Parameter } from './catalog.ts'
import { PROXY } from './check-context.ts'

/**
 * Generates the TypeScript against which a catalog's handlers are checked: one entry per served handler, with the
 * type of its parameters. Deterministic, so that a build can compare the committed file with it.
 */
export function generateTypes(catalog: Catalog, engine: string): string {
  const handlers = new Map<string, Operation>()
  for (const operation of catalog.operations) {
    const { handler, planned } = operation
    if (!planned && handler !== PROXY && !handlers.has(handler)) handlers.set(handler, operation)
  }
  const entries = [...handlers.values()]
    .sort((a, b) => (a.handler < b.handler ? -1 : 1))
    .map((operation) => handlerEntry(operation))
  const streams = [...handlers.values()]
    .filter(({ response }) => response.stream)
    .map(({ handler }) => `'${handler}'`)
  const uses = (name: string): boolean => entries.some((entry) => new RegExp(`\\b${name}\\b`).test(entry))
  return [
    '// Generated from the catalog by `ratecard types`. Do not edit: change the catalog.',
    'import type {',
    '  ConfigurableHandler as EngineConfigurableHandler,',
    '  Handler as EngineHandler,',
    '  Handlers as EngineHandlers,',
    '  HandlerWithPreview as EngineHandlerWithPreview,',
    ...['Json', 'JsonObject'].filter(uses).map((name) => `  ${name},`),
    '  StoringHandler as EngineStoringHandler,',
    ...(streams.length === 0 ? [] : ['  StreamHandler as EngineStreamHandler,']),
    `} from '${engine}'`,
    '',
    'export interface Parameters {',
    ...entries,
    '}',
    '',
    'export type Handler<Name extends keyof Parameters> = EngineHandler<Parameters[Name]>',
    'export type HandlerWithPreview<Name extends keyof Parameters> = EngineHandlerWithPreview<Parameters[Name]>',
    'export type ConfigurableHandler<Name extends keyof Parameters> = EngineConfigurableHandler<Parameters[Name]>',
    'export type StoringHandler<Name extends keyof Parameters> = EngineStoringHandler<Parameters[Name]>',
    ...(streams.length === 0
      ? ['export type Handlers = EngineHandlers<Parameters>']
      : [
          `export type Streams = ${streams.toSorted().join(' | ')}`,
          'export type StreamHandler<Name extends Streams> = EngineStreamHandler<Parameters[Name]>',
          'export type Handlers = EngineHandlers<Parameters, Streams>',
        ]),
    '',
  ].join('\n')
}

function handlerEntry({ handler, parameters, body }: Operation): string {
  const key = /^[a-z][A-Za-z0-9_]*$/.test(handler) ? handler : `'${handler}'`
  const whole = body?.form === 'whole' ? [`    readonly body: ${bodyType(body)}`] : []
  if (parameters.length + whole.length === 0) return `  readonly ${key}: Record<never, never>`
  const members = parameters.map((parameter) => {
    const given = parameter.required || parameter.default !== undefined
    return `    readonly ${parameter.name}${given ? '' : '?'}: ${typeOf(parameter)}`
  })
  return [`  readonly ${key}: {`, ...members, ...whole, '  }'].join('\n')
}

function bodyType({ kind, schema }: Body): string {
  switch (kind) {
    case 'json':
      return schema === undefined ? 'Json' : schemaType(schema, schema)
    case 'form':
      return '{ readonly [name: string]: string }'
    case 'text':
      return 'string'
    case 'bytes':
      return 'Uint8Array'
  }
}

/** Depth below which references are any JSON, also for references in a cycle. */
const DEEPEST = 8

/** The type that a JSON Schema allows, as far as TypeScript can express it; any JSON otherwise. */
function schemaType(schema: Json | undefined, root: JsonObject, depth = 0): string {
  if (!isJsonObject(schema) || depth > DEEPEST) return 'Json'
  const inner = (each: Json | undefined): string => schemaType(each, root, depth + 1)
  const { $ref, const: value, enum: values, anyOf, oneOf, allOf, type, properties, items } = schema
  if (typeof $ref === 'string') return inner(resolve($ref, root))
  if (value !== undefined) return literal(value)
  if (Array.isArray(values)) return union(values.map(literal))
  const choice = anyOf ?? oneOf
  if (Array.isArray(choice)) return union(choice.map(inner))
  if (Array.isArray(allOf)) return allOf.map((each) => `(${inner(each)})`).join(' & ')
  if (Array.isArray(type)) return union(type.map((each) => inner({ ...schema, type: each })))
  switch (type) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return type
    case 'integer':
      return 'number'
    case 'array':
      return `readonly (${inner(items)})[]`
    case 'object':
      return isJsonObject(properties) ? objectType(properties, schema, inner) : 'JsonObject'
    default:
      return isJsonObject(properties) ? objectType(properties, schema, inner) : 'Json'
  }
}

function objectType(properties: JsonObject, { required }: JsonObject, inner: (each: Json) => string): string {
  const needed: readonly Json[] = Array.isArray(required) ? required : []
  const members = Object.entries(properties).map(
    ([name, each]) => `readonly ${JSON.stringify(name)}${needed.includes(name) ? '' : '?'}: ${inner(each)}`,
  )
  return members.length === 0 ? 'JsonObject' : `{ ${members.join('; ')} }`
}

/** Resolves a JSON Pointer within the same schema; other references are not followed. */
function resolve(reference: string, root: JsonObject): Json | undefined {
  if (!reference.startsWith('#')) return undefined
  return reference
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<Json | undefined>((value, step) => (isJsonObject(value) ? value[step] : undefined), root)
}

function literal(value: Json): string {
  return typeof value === 'object' && value !== null ? 'Json' : JSON.stringify(value)
}

function union(types: readonly string[]): string {
  return [...new Set(types)].join(' | ') || 'never'
}

function typeOf({ type, list, enum: values }: Parameter): string {
  if (list !== undefined) return list.items === 'integer' ? 'readonly number[]' : 'readonly string[]'
  if (values !== undefined)
    return values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))).join(' | ')
  if (type === 'object') return 'JsonObject'
  return type === 'integer' ? 'number' : type
}
