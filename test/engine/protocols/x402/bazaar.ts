import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/engine/json.ts'
import { examplePath } from '../../../../src/engine/catalog/catalog.ts'
import { NETWORKS } from '../../../../src/engine/networks.ts'
import { createChallenge } from '../../../../src/engine/protocols/x402/challenge.ts'
import { bazaarExtension, detailsOf } from '../../../../src/engine/protocols/x402/bazaar.ts'
import { compileRoutes } from '../../../support/compiled.ts'
import { paidRoutes, shippedCatalog } from '../../../support/x402.ts'

const routes = paidRoutes(shippedCatalog())
// At its strictest: a keyword or a format that a facilitator does not know would drop the listing.
const ajv = new Ajv2020()

function member(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((at, key) => (isJsonObject(at) ? at[key] : undefined), value)
}

t.test('shows a facilitator every route with an example that satisfies its schema', async (t) => {
  for (const route of routes) {
    for (const detail of detailsOf(route)) {
      const { info, schema } = bazaarExtension(route, detail)
      if (!isJsonObject(schema)) throw new Error('no schema')
      const validate = ajv.compile(schema)
      t.ok(
        validate(info),
        `${route.path} ${detail.input} ${detail.members}: ${ajv.errorsText(validate.errors)}`,
      )
      t.notMatch(JSON.stringify(schema), /\$ref/)
      t.equal(member(schema, 'properties', 'input', 'properties', 'queryParams', 'type'), 'object')
    }
  }
})

t.test('accepts a request with the defaults of the schema filled in', async (t) => {
  for (const route of routes) {
    for (const detail of detailsOf(route)) {
      const { schema } = bazaarExtension(route, detail)
      const properties = member(schema, 'properties', 'input', 'properties', 'queryParams', 'properties')
      for (const [name, property] of Object.entries((properties ?? {}) as JsonObject)) {
        if (!isJsonObject(property) || property['default'] === undefined) continue
        t.ok(ajv.validate(property, property['default']), `${route.path} ${name}`)
      }
    }
  }
})

t.test('gives a templated path an example that can be called', async (t) => {
  const [route] = routes.filter(({ path }) => path.includes('{'))
  if (route === undefined) throw new Error('no templated route')
  const [detail] = detailsOf(route)
  if (detail === undefined) throw new Error('no detail')
  const extension = bazaarExtension(route, detail)
  t.equal(examplePath(route), '/paid/gamestore/app/730')
  t.equal(extension['routeTemplate'], '/paid/gamestore/app/:appid')
  t.strictSame(member(extension, 'info', 'input', 'pathParams'), { appid: '730' })
  t.strictSame(
    member(extension, 'schema', 'properties', 'input', 'properties', 'pathParams', 'properties', 'appid'),
    { type: 'string' },
    'a probe may put the template there',
  )
})

t.test('trims the listing step by step', async (t) => {
  for (const route of routes) {
    const sizes = [...detailsOf(route)].map((detail) => JSON.stringify(bazaarExtension(route, detail)).length)
    t.strictSame(
      sizes,
      [...sizes].sort((a, b) => b - a),
      route.path,
    )
  }
})

t.test('makes every route of any valid catalog fit for a facilitator’s list', async (t) => {
  const odd = compileRoutes(`  /paid/odd/{place}/{number}:
    price: 1
    summary: X
    parameters:
      place: { type: string, pattern: '^[a-z]+$', maxLength: 5, example: north }
      number: { type: integer, minimum: 1, example: 7 }
      word: { type: string, default: '', minLength: 3, maxLength: 9, example: tides }
      kind: { type: string, default: all, enum: [all, high, low], aliases: { top: high }, example: low }
      maybe: { type: string, enum: [a, b] }
      ratio: { type: number, exclusiveMinimum: 0, maximum: 1, default: 0.5, example: 1 }
      deep: { type: boolean, default: false, example: true }
      on: { type: string, default: '', format: date, example: '2026-02-28' }
      land: { type: string, default: US, format: country, example: JP }
      ids: { type: string, required: true, list: { items: integer, max_items: 3 }, example: '1,2' }
    example: [{ a: [[1]] }]
  /paid/bare: { price: 1, summary: X }
  /paid/text: { price: 1, summary: X, example: { long: '${'é'.repeat(80)}', none: null, list: [] } }
`)
  for (const route of odd.routes) {
    for (const detail of detailsOf(route)) {
      const { info, schema, routeTemplate } = bazaarExtension(route, detail)
      if (!isJsonObject(schema)) throw new Error('no schema')
      const validate = ajv.compile(schema)
      t.ok(validate(info), `${route.path} ${JSON.stringify(detail)}: ${ajv.errorsText(validate.errors)}`)
      if (routeTemplate !== undefined) t.match(routeTemplate, /^\/[a-zA-Z0-9_/:.\-~%]+$/)
    }
  }
})

t.test('describes input and output in the 402 of every route, where probers look', async (t) => {
  const networks = NETWORKS.filter(({ testnet }) => !testnet)
    .slice(0, 4)
    .map((network) => ({ network, payTo: `0x${'1'.repeat(40)}`, timeoutSeconds: 60 }))
  const { service } = shippedCatalog()
  for (const route of routes) {
    const { price } = route.operation
    if (price === undefined) throw new Error('no price')
    const settings = { service, baseUrl: 'https://api.example.com', networks, nextToken: () => '' }
    const { published } = createChallenge(route, price, settings)
    const properties = member(published, 'extensions', 'bazaar', 'schema', 'properties')
    t.equal(member(properties, 'input', 'properties', 'queryParams', 'type'), 'object', route.path)
    t.equal(member(properties, 'output', 'properties', 'example', 'type'), 'object', route.path)
    t.ok(isJsonObject(member(published, 'extensions', 'bazaar', 'info', 'output', 'example')), route.path)
  }
})
