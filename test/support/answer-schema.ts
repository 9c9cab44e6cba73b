import { fileURLToPath } from 'node:url'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import {
  documentNames,
  isJsonObject,
  loadCatalog,
  type Json,
  type JsonObject,
} from '../../src/engine/internal.ts'

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
const { catalog } = loadCatalog(fileURLToPath(new URL('../../catalog.yaml', import.meta.url)), {
  handlers: undefined,
  documents: documentNames,
})

/**
 * How an answer of the shipped catalog differs from the schema of its route, sample or tool; nothing when it fits. A field
 * that the schema does not name is a difference, too.
 */
export function differences(name: string, answer: unknown): string[] {
  const validate = validators.get(name) ?? validatorOf(name)
  validators.set(name, validate)
  if (validate(answer)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

function validatorOf(name: string): ValidateFunction {
  const route = catalog.routes.find(({ path }) => path === name)
  const operation = route?.operation ?? catalog.operations.find(({ tool }) => tool?.name === name)
  const schema = operation?.responseSchema
  if (schema === undefined) throw new Error(`${name} has no response schema`)
  const promised = route?.kind === 'sample' ? withoutPromises(schema) : schema
  const { properties, ...rest } = promised
  if (!isJsonObject(properties)) throw new Error(`the schema of ${name} has no properties`)
  const known = Object.fromEntries(ENVELOPE.map((member) => [member, {}]))
  return ajv.compile(closed({ ...rest, properties: { ...known, ...properties } }))
}

/** A preview may leave members out at every level. */
function withoutPromises(schema: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === 'required' && Array.isArray(value) ? undefined : value,
  ) as JsonObject
}

/** With nothing allowed that is not named. */
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
