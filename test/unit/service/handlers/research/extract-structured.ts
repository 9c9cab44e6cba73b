import t from 'tap'
import { Failure, InvalidParameter, type JsonObject } from '../../../../../src/engine/handler.ts'
import { extractStructured } from '../../../../../src/service/handlers/research/extract-structured.ts'
import type { LanguageModel } from '../../../../../src/service/sources/model.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import {
  openProvider,
  says,
  standInModel,
  type ModelBehavior,
} from '../../../../support/service/model-provider.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const TEXT = 'Portal 2 came out on 18 April 2011 and costs 9.75 euros.'
const SCHEMA: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string' }, price: { type: 'number' } },
  required: ['name'],
}

async function extract(model: LanguageModel, schema = SCHEMA): Promise<JsonObject> {
  return checkedAnswer(
    'research/extract-structured',
    await extractStructured(model).run({ text: TEXT, schema }, fixedContext()),
  ).body
}

/** What the caller reads instead of an answer. */
async function refusal(work: Promise<unknown>): Promise<Failure | InvalidParameter> {
  const fault = await work.then(
    () => new Error('It was answered'),
    (thrown: unknown) => thrown,
  )
  if (fault instanceof Failure || fault instanceof InvalidParameter) return fault
  throw fault
}

t.test('publishes an example that equals the handler’s answer with the stand-in', async (t) => {
  t.same(await extract(await standInModel(t)), publishedExample('research/extract-structured'))
})

t.test('asks the model once more, with the errors, when its answer violates the schema', async (t) => {
  for (const [wrong, complaint] of [
    ['{"price": 9.75}', /required property 'name'/],
    ['{"name": "Portal 2"', /not one whole JSON object/],
  ] as const) {
    const { model, asked } = await openProvider(t, says(wrong, '{"name":"Portal 2","price":9.75}'))
    t.match(await extract(model), { data: { name: 'Portal 2', price: 9.75 }, valid: true, attempts: 2 })
    t.equal(asked.length, 2)
    const [, , said, told] = asked[1]?.body.messages ?? []
    t.match(said, { role: 'assistant', content: wrong })
    t.match(told?.content, complaint)
  }
})

t.test('refuses an answer that still violates the schema, and names where', async (t) => {
  const { model, asked } = await openProvider(t, says('{"name": 7}'))
  const fault = await refusal(extract(model))
  t.match(fault, { code: 'schema_mismatch', extra: { errors: [{ path: '/name', keyword: 'type' }] } })
  t.equal(asked.length, 2, 'and nobody is asked a third time')
})

const FAULTS: readonly (readonly [string, ModelBehavior, string])[] = [
  ['429', { kind: 'status', status: 429 }, 'source_limited'],
  ['500', { kind: 'status', status: 500 }, 'source_error'],
  ['silence', { kind: 'hangs' }, 'source_timeout'],
  ['half JSON', says('{"name": "Por'), 'schema_mismatch'],
  ['a wrong type', says('["Portal 2"]'), 'schema_mismatch'],
  ['a refusal', { kind: 'refuses' }, 'source_error'],
  ['an end too soon', { kind: 'ends', reason: 'length' }, 'source_error'],
]
for (const [name, manner, code] of FAULTS) {
  t.test(`answers ${code} for ${name} of a model`, async (t) => {
    const { model } = await openProvider(t, manner, manner.kind === 'hangs' ? 300 : 5000)
    t.match(await refusal(extract(model)), { code })
  })
}

function nested(levels: number): JsonObject {
  return levels === 1 ? { type: 'object' } : { type: 'object', properties: { x: nested(levels - 1) } }
}

t.test('refuses an unusable schema before the model is called', async (t) => {
  const { model, asked } = await openProvider(t, says('{"x":{}}'))
  const many = (count: number): JsonObject => ({
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, {}])),
  })
  const deep: JsonObject = JSON.parse(`${'{"not":'.repeat(20_000)}{}${'}'.repeat(20_000)}`)
  const refused: readonly (readonly [JsonObject, RegExp])[] = [
    [{ type: 'array' }, /"type": "object"/],
    [{}, /"type": "object"/],
    [{ type: 'object', $ref: 'http://127.0.0.1:1/schema' }, /leads outside/],
    [{ type: 'object', properties: { a: { $ref: 'other.json' } } }, /leads outside/],
    [{ type: 'object', $ref: '#/$defs/none' }, /leads outside/],
    [{ type: 'object', $ref: '#' }, /without an end/],
    [{ type: 'object', properties: { a: { type: 'strng' } } }, /not a valid JSON Schema/],
    [{ type: 'object', properties: { a: { pattern: '(' } } }, /not a regular expression/],
    [{ type: 'object', description: 'x'.repeat(33_000) }, /32768 bytes/],
    [nested(13), /12 levels/],
    [{ type: 'object', ...deep }, /12 levels/],
    [{ type: 'object', enum: [[[[[[[[[[[[[[{}]]]]]]]]]]]]]] }, /12 levels/],
    [many(200), /200 subschemas/],
  ]
  for (const [schema, sentence] of refused) {
    const fault = await refusal(extract(model, schema))
    t.match(fault, { parameter: 'schema', sentence })
    const early = await refusal(
      extractStructured(model).check?.({ text: TEXT, schema }, fixedContext()) ?? Promise.resolve(),
    )
    t.match(early, { sentence }, 'and the same before a payment')
  }
  t.equal(asked.length, 0, 'nobody was asked')
  t.match(await extract(model, nested(12)), { valid: true })
  t.match(await extract(model, many(199)), { valid: true })
  const recursive = { type: 'object', properties: { x: { $ref: '#' } } }
  t.match(await extract(model, recursive), { valid: true }, 'a tree may speak of itself')
})

t.test('keeps every property as data, away from prototypes', async (t) => {
  const { model } = await openProvider(t, says('{"name":"x","__proto__":{"polluted":true}}'))
  const body = await extract(model)
  t.match(JSON.stringify(body), /"__proto__":\{"polluted":true\}/)
  t.equal(Reflect.get({}, 'polluted'), undefined)
})

t.test('asks the provider for strict output only with a closed schema', async (t) => {
  const { model, asked } = await openProvider(t, says('{"name":"x"}'))
  await extract(model)
  const closed = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
  await extract(model, { ...closed, additionalProperties: false })
  t.same(
    asked.map(({ body }) => body.response_format?.json_schema.strict),
    [undefined, true],
  )
})

t.test('leaves the tool out without a model, and says so to a call', async (t) => {
  const { configured, run } = extractStructured(undefined)
  t.equal(configured, false)
  t.match(await refusal(run({ text: TEXT, schema: SCHEMA }, fixedContext())), { code: 'not_configured' })
})
