import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import type { Operation } from '../../../../src/engine/catalog/catalog.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/engine/base/json.ts'
import { outputSchema } from '../../../../src/engine/mcp/output-schema.ts'
import { at } from '../../../support/documents.ts'
import { shippedCatalog } from '../../../support/shipped-catalog.ts'

/** Members of an answer that its schema does not describe. */
function undescribed(value: Json, schema: Json | undefined, path: string): string[] {
  if (Array.isArray(value))
    return value.flatMap((item: Json) => undescribed(item, at(schema, 'items'), `${path}[]`))
  if (!isJsonObject(value)) return schema === undefined ? [path] : []
  // Free-form members, such as what a caller asked to extract.
  if (schema !== undefined && at(schema, 'properties') === undefined)
    return at(schema, 'additionalProperties') === undefined && Object.keys(value).length > 0 ? [path] : []
  return Object.entries(value).flatMap(([name, member]) =>
    undescribed(
      member,
      at(schema, 'properties', name) ?? at(schema, 'additionalProperties'),
      `${path}/${name}`,
    ),
  )
}

/** What a call of the tool answers, as far as the catalog shows it. */
function answerOf({ example }: Operation): JsonObject {
  const shown = isJsonObject(example) ? example : {}
  const envelope = {
    endpoint: 'x',
    source: [{ name: 'computed' }],
    fetched_at: '2026-01-01T00:00:00.000Z',
    cached: false,
    cache_ttl_seconds: 0,
    warnings: [{ code: 'stale', message: 'older than usual' }],
  }
  return { ...envelope, ...shown }
}

const tools = shippedCatalog().operations.filter(({ tool }) => tool !== undefined)

t.test('describes the answer of every tool that ships, at every level', async (t) => {
  t.ok(tools.length >= 15)
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  for (const operation of tools) {
    t.ok(isJsonObject(operation.example), operation.tool?.name ?? '')
    const schema = outputSchema(operation) ?? {}
    const answer = answerOf(operation)
    const fits = ajv.compile(schema)
    t.ok(fits(answer), `${operation.tool?.name}: ${ajv.errorsText(fits.errors)}`)
    t.strictSame(undescribed(answer, schema, ''), [], operation.tool?.name ?? '')
  }
})

t.test(
  'requires nothing and limits nothing, since a paid answer that breaks a promise is lost',
  async (t) => {
    for (const operation of tools) {
      const text = JSON.stringify(outputSchema(operation))
      for (const promise of ['"required":[', '"additionalProperties":false', '"oneOf":[', '"minimum":'])
        t.notMatch(text, promise, operation.tool?.name ?? '')
    }
  },
)
