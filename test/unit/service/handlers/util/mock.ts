import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import t from 'tap'
import type { Json, JsonObject } from '../../../../../src/engine/handler.ts'
import { isJsonObject } from '../../../../../src/engine/handler.ts'
import type { Parameters } from '../../../../../src/service/handlers/catalog.ts'
import { mock } from '../../../../../src/service/handlers/util/mock.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

type KindName = Parameters['util/mock']['kind']

const KINDS: readonly KindName[] = [
  'people',
  'companies',
  'products',
  'orders',
  'transactions',
  'addresses',
  'events',
  'logs',
  'reviews',
  'iot',
]

async function ask(kind: KindName, n: number, seed: string): Promise<JsonObject> {
  return checkedAnswer('util/mock', await mock.run({ kind, n, seed }, fixedContext())).body
}

function items(body: JsonObject): readonly Json[] {
  const list: Json | undefined = body['items']
  if (!Array.isArray(list)) throw new Error('expected an array')
  return list
}

/** Every leaf with the name of its field. */
function* leaves(value: Json, name = ''): Generator<readonly [string, Json]> {
  if (Array.isArray(value)) for (const each of value) yield* leaves(each, name)
  else if (isJsonObject(value))
    for (const [key, each] of Object.entries(value)) yield* leaves(each ?? null, key)
  else yield [name, value]
}

t.test('gives the same bytes for the same seed, and others for another', async (t) => {
  for (const kind of KINDS) {
    const first = JSON.stringify(await ask(kind, 20, 'abc'))
    t.equal(JSON.stringify(await ask(kind, 20, 'abc')), first, kind)
    t.not(JSON.stringify(items(await ask(kind, 20, 'abd'))), JSON.stringify(items(JSON.parse(first))), kind)
  }
})

t.test('keeps the first rows when more are requested', async (t) => {
  for (const kind of KINDS) {
    t.strictSame(items(await ask(kind, 60, 'abc')).slice(0, 7), items(await ask(kind, 7, 'abc')), kind)
  }
})

t.test('varies the rows', async (t) => {
  for (const kind of KINDS) {
    t.equal(new Set(items(await ask(kind, 500, 'abc')).map((row) => JSON.stringify(row))).size, 500, kind)
  }
})

t.test('gives the same rows on every day', async (t) => {
  const later = fixedContext({ now: () => new Date('2031-03-03T03:03:03Z') })
  const then = checkedAnswer('util/mock', await mock.run({ kind: 'orders', n: 3, seed: 'abc' }, later)).body
  t.strictSame(then, await ask('orders', 3, 'abc'))
})

t.test('draws a random seed when none is given, and states it', async (t) => {
  const body = await ask('people', 3, '')
  t.equal(body['seed'], '07070707')
  t.strictSame(await ask('people', 3, '07070707'), body)
  const other = fixedContext({ random: (bytes) => new Uint8Array(bytes).fill(8) })
  t.not(
    checkedAnswer('util/mock', await mock.run({ kind: 'people', n: 3, seed: '' }, other)).body['seed'],
    body['seed'],
  )
})

t.test('gives rows of every kind that fit the schema in the answer', async (t) => {
  for (const kind of KINDS) {
    const ajv = new Ajv2020({ allErrors: true })
    addFormats.default(ajv)
    const body = await ask(kind, 2000, 'schema')
    const check = ajv.compile({ type: 'array', items: body['schema'] })
    t.ok(check(items(body)), `${kind} ${ajv.errorsText(check.errors?.slice(0, 3))}`)
  }
})

t.test('uses only reserved addresses in 2,000 rows of every kind', async (t) => {
  const rules: Readonly<Record<string, RegExp>> = {
    email: /^[a-z0-9._-]+@example\.(com|net|org)$/,
    phone: /^\+1-\d{3}-555-01\d\d$/,
    ip: /^192\.0\.2\.(25[0-4]|2[0-4]\d|1\d\d|[1-9]\d?)$/,
    client_ip: /^192\.0\.2\.(25[0-4]|2[0-4]\d|1\d\d|[1-9]\d?)$/,
    mac_address: /^00:00:5e:00:53:[0-9a-f]{2}$/,
    host: /^[a-z]+-\d+\.example$/,
    // 00501 is the lowest ZIP code that was ever assigned
    postal_code: /^00[0-4]\d\d$/,
    website: /^https:\/\/[a-z0-9-]+\.example\/$/,
    url: /^https:\/\/[a-z0-9-]+\.example\//,
    referrer: /^https:\/\/[a-z0-9-]+\.example\/$/,
    card_number: /^(4242424242424242|4111111111111111|5555555555554444|378282246310005|6011111111111117)$/,
    iban: /^(DE89370400440532013000|ES9121000418450200051332|FR1420041010050500013M02606|GB29NWBK60161331926819|NL91ABNA0417164300)$/,
  }
  const seen = new Set<string>()
  for (const kind of KINDS) {
    for (const [name, value] of leaves(items(await ask(kind, 2000, 'safe')))) {
      if (typeof value !== 'string') continue
      const rule = rules[name]
      if (rule !== undefined) {
        seen.add(name)
        if (!rule.test(value)) t.fail(`${kind}.${name}: ${value}`)
        // A browser's version has four numbers and is no address.
      } else if (
        name !== 'user_agent' &&
        /@|:\/\/|\bwww\.|(\d{1,3}\.){3}\d|\.(com|net|org|io)\b/.test(value)
      ) {
        t.fail(`${kind}.${name}: ${value}`)
      }
    }
  }
  t.strictSame([...seen].sort(), Object.keys(rules).sort())
})

t.test('rounds a position so that it names no house', async (t) => {
  for (const [name, value] of leaves(items(await ask('addresses', 2000, 'safe')))) {
    if (name === 'latitude' || name === 'longitude') t.match(JSON.stringify(value), /^-?\d+(\.\d\d?)?$/, name)
  }
})

t.test('adds up an order', async (t) => {
  for (const order of items(await ask('orders', 200, 'sum'))) {
    if (!isJsonObject(order) || !Array.isArray(order['lines'])) throw new Error('expected an order')
    const cents = order['lines'].reduce(
      (sum: number, line: { quantity: number; unit_price: number }) =>
        sum + line.quantity * Math.round(line.unit_price * 100),
      0,
    )
    t.equal(order['total'], cents / 100)
  }
})

t.test('gives the free sample the same fields', async (t) => {
  const body = await ask('people', 3, 'sample')
  t.strictSame(mock.preview(body), body)
})

t.test('publishes an example that equals the handler’s answer', async (t) => {
  t.strictSame(await ask('people', 2, 'abc'), publishedExample('util/mock'))
})
