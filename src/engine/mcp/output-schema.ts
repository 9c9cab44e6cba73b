import { isJsonMedia } from '../catalog/body.ts'
import type { Operation } from '../catalog/catalog.ts'
import { embedSchema } from '../catalog/input-schema.ts'
import { changeParts } from '../catalog/schema-parts.ts'
import { isVerbatim } from '../documents/answer-example.ts'
import { isJsonObject, type JsonObject } from '../base/json.ts'

/**
 * The schema of `structuredContent`: names, types and meanings at every level. Clients refuse an answer that breaks a
 * promise, although it was paid for: so nothing is required, and no limit is promised. Undefined where the catalog
 * declares no JSON.
 */
export function outputSchema(operation: Operation): JsonObject | undefined {
  const { responseSchema, response } = operation
  const isJson = response.mediaType === undefined || isJsonMedia(response.mediaType)
  if (responseSchema === undefined || !isJson || response.stream) return undefined
  const described = describeOnly(responseSchema)
  const { type = 'object', properties } = described
  if (type === 'array')
    return { type: 'object', properties: { items: embedSchema(described, '/properties/items') } }
  if (type !== 'object') return undefined
  if (isVerbatim({ operation })) return { ...described, type }
  return { ...described, type, properties: { ...ENVELOPE, ...(isJsonObject(properties) ? properties : {}) } }
}

const KEPT: readonly string[] = [
  '$ref',
  '$defs',
  'type',
  'title',
  'description',
  'properties',
  'additionalProperties',
  'items',
  'prefixItems',
  'allOf',
  'anyOf',
]

function describeOnly({ oneOf, ...schema }: JsonObject): JsonObject {
  // Without limits several forms may fit.
  const whole = oneOf === undefined ? schema : { anyOf: oneOf, ...schema }
  const kept = Object.entries(whole).filter(([key, value]) => KEPT.includes(key) && value !== false)
  return changeParts(Object.fromEntries(kept), '', describeOnly)
}

const TEXT: JsonObject = { type: 'string' }

/** The members of every answer that is not passed on as it came. */
const ENVELOPE: JsonObject = {
  endpoint: TEXT,
  source: { type: 'array', items: { type: 'object', properties: { name: TEXT, url: TEXT } } },
  fetched_at: TEXT,
  cached: { type: 'boolean' },
  cache_ttl_seconds: { type: 'integer' },
  warnings: { type: 'array', items: { type: 'object', properties: { code: TEXT, message: TEXT } } },
}
