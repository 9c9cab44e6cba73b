import { fileURLToPath } from 'node:url'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { loadCatalog } from '../../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../../src/engine/documents/all.ts'
import type { Answer, EnvelopedAnswer } from '../../../src/engine/handler.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../src/engine/base/json.ts'
import { enveloped } from '../handler-context.ts'

const ENVELOPE = [
  'endpoint',
  'source',
  'fetched_at',
  'cached',
  'cache_ttl_seconds',
  'warnings',
  'preview',
  'truncated',
  'full',
]
const ajv = new Ajv2020({ strict: false, allowUnionTypes: true, allErrors: true, validateFormats: false })
const validators = new Map<string, ValidateFunction>()
const { catalog } = loadCatalog(fileURLToPath(new URL('../../../catalog.yaml', import.meta.url)), {
  handlers: undefined,
  documents: documentNames,
})

/**
 * How an answer of the shipped catalog differs from the schema of its route, sample, tool or handler; nothing when it fits.
 * A field that the schema does not name is a difference, too.
 */
export function schemaDifferences(name: string, answer: unknown): string[] {
  const validate = validators.get(name) ?? validatorOf(name)
  validators.set(name, validate)
  if (validate(answer)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

/** What a handler has answered; throws where it differs from the response schema that buyers read. */
export function checkedAnswer(handler: string, answer: Answer): EnvelopedAnswer {
  const { body, ...rest } = enveloped(answer)
  const differences = schemaDifferences(handler, body)
  if (differences.length > 0) throw new Error(`${differences.join('\n')}\nin ${JSON.stringify(body)}`)
  return { body, ...rest }
}

function validatorOf(name: string): ValidateFunction {
  const route = catalog.routes.find(({ path }) => path === name)
  const operation =
    route?.operation ??
    catalog.operations.find(({ tool, handler }) => tool?.name === name || handler === name)
  const schema = operation?.responseSchema
  if (schema === undefined) throw new Error(`${name} has no response schema`)
  const promised = route?.kind === 'sample' ? withoutPromises(schema) : schema
  const { properties, ...rest } = promised
  if (!isJsonObject(properties)) throw new Error(`the schema of ${name} has no properties`)
  const known = Object.fromEntries(ENVELOPE.map((member) => [member, {}]))
  return ajv.compile(closed({ ...rest, properties: { ...known, ...properties } }))
}

/** A preview may omit members at every level. */
function withoutPromises(schema: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === 'required' && Array.isArray(value) ? undefined : value,
  ) as JsonObject
}

/** The schema without any undeclared members. */
function closed(schema: JsonObject): JsonObject {
  const members = Object.entries(schema).map(([key, value]): [string, Json] => {
    if (key === 'properties' && isJsonObject(value))
      return [
        key,
        Object.fromEntries(
          Object.entries(value).map(([name, each]) => [name, isJsonObject(each) ? closed(each) : each]),
        ),
      ]
    return [key, isJsonObject(value) ? closed(value) : value]
  })
  const isOpen = 'properties' in schema && !('additionalProperties' in schema)
  return { ...Object.fromEntries(members), ...(isOpen ? { additionalProperties: false } : {}) }
}

const MOMENT = '2026-11-20T20:00:00.000Z'
/** Fields whose lists are shortened in examples. */
const LONG = new Set(['items', 'in_all', 'similar_titles'])

/** An answer in the form of an example: short lists, the same time everywhere, no warnings. */
export function trimmed(value: Json, field = ''): Json {
  if (field === 'warnings') return []
  if (field === 'fetched_at' || field === 'as_of') return MOMENT
  if (Array.isArray(value)) return (LONG.has(field) ? value.slice(0, 1) : value).map((each) => trimmed(each))
  if (!isJsonObject(value)) return value
  const members = Object.entries(value).map(([name, each]): [string, Json] => [
    name,
    // The lists below `unique` are named by country.
    trimmed(each, field === 'unique' ? 'in_all' : name),
  ])
  const short = Object.fromEntries(members)
  return Array.isArray(short['items']) && 'count' in short
    ? { ...short, count: short['items'].length }
    : short
}

/**
 * Where a body differs in shape from an example: every field of the example must be present with the same type. Null
 * matches everything; each item of a list is compared with the first of the example.
 */
export function shapeDifferences(example: unknown, body: unknown, at = ''): string[] {
  if (example === null || body === null) return []
  if (Array.isArray(example)) {
    if (!Array.isArray(body)) return [`${at} is no list`]
    const [first] = example
    return first === undefined
      ? []
      : body.flatMap((item, place) => shapeDifferences(first, item, `${at}/${place}`))
  }
  if (typeof example !== 'object') return typeof example === typeof body ? [] : [`${at} is ${typeof body}`]
  if (typeof body !== 'object' || Array.isArray(body)) return [`${at} is no object`]
  const fields = new Map(Object.entries(body))
  return Object.entries(example).flatMap(([name, value]) =>
    fields.has(name)
      ? shapeDifferences(value, fields.get(name), `${at}/${name}`)
      : [`${at}/${name} is missing`],
  )
}
