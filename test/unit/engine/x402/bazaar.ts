import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/engine/base/json.ts'
import { examplePath } from '../../../../src/engine/catalog/catalog.ts'
import { curlOf } from '../../../../src/engine/documents/example-programs.ts'
import { NETWORKS } from '../../../../src/engine/base/networks.ts'
import { offerOf } from '../../../../src/engine/x402/exact-evm/accepted-network.ts'
import { createChallenge } from '../../../../src/engine/x402/x402-challenge.ts'
import { bazaarExtension, COMPLETE, detailsOf } from '../../../../src/engine/x402/bazaar.ts'
import { compileRoutes, fixedPriceOf } from '../../../support/catalogs.ts'
import { paidRoutes, shippedCatalog } from '../../../support/shipped-catalog.ts'

const routes = paidRoutes(shippedCatalog())
// At its strictest: a keyword or a format that a facilitator does not know would drop the listing.
const ajv = new Ajv2020()

function member(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((at, key) => (isJsonObject(at) ? at[key] : undefined), value)
}

t.test('shows a facilitator every route with an example that satisfies its schema', async (t) => {
  for (const route of routes) {
    for (const detail of [COMPLETE, ...detailsOf(route)]) {
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

t.test(
  'shows a body of each form that the extension knows, with an example that satisfies its schema',
  async (t) => {
    const { routes } = compileRoutes(`
  POST /paid/json: { price: 0.01, summary: Takes JSON, body: { properties: { n: { type: integer, required: true, example: 1 } } } }
  POST /paid/form: { price: 0.01, summary: Takes a form, body: { media_type: application/x-www-form-urlencoded, properties: { n: { type: integer, required: true, example: 1 } } } }
  POST /paid/text: { price: 0.01, summary: Takes a text, body: { media_type: text/plain, example: It's late } }
  POST /paid/any-text: { price: 0.01, summary: Takes any text, body: { media_type: text/plain } }
  POST /paid/image: { price: 0.01, summary: Takes an image, body: { media_type: image/png } }
`)
    const shown = routes.map((route) => {
      const { info, schema } = bazaarExtension(route, COMPLETE)
      if (!isJsonObject(schema)) throw new Error('no schema')
      t.ok(ajv.validate(schema, info), `${route.path}: ${ajv.errorsText()}`)
      return [route.path, member(info, 'input', 'bodyType'), member(info, 'input', 'body')]
    })
    t.strictSame(shown, [
      ['/paid/json', 'json', { n: 1 }],
      ['/paid/form', 'form-data', { n: 1 }],
      ['/paid/text', 'text', "It's late"],
      ['/paid/any-text', 'text', ''],
      ['/paid/image', undefined, undefined],
    ])
    const commands = routes.map(
      (route) => curlOf('https://api.example.com', route).split(' --data-binary ')[1],
    )
    t.strictSame(commands, [`'{"n":1}'`, `'n=1'`, `'It'\\''s late'`, '@body', '@body'])
  },
)

t.test('says of what type an answer is, and names the media type of what is no JSON', async (t) => {
  const { routes } = compileRoutes(`
  /paid/json: { price: 0.01, summary: JSON, example: { n: 1 } }
  /paid/text: { price: 0.01, summary: Text, response: { media_type: text/plain } }
  /paid/pdf: { price: 0.01, summary: File, response: { media_type: application/pdf } }
  /paid/feed: { price: 0.01, summary: Feed, response: { media_type: application/atom+xml } }
  /paid/lines: { price: 0.01, summary: Stream, response: { media_type: application/x-ndjson, stream: true } }
`)
  const settings = { baseUrl: 'https://api.example.com', offers: [], v1: false, nextToken: () => '' }
  const shown = routes.map((route) => {
    for (const detail of [COMPLETE, ...detailsOf(route)]) {
      const { info, schema } = bazaarExtension(route, detail)
      if (!isJsonObject(schema)) throw new Error('no schema')
      t.ok(ajv.validate(schema, info), `${route.path}: ${ajv.errorsText()}`)
      t.ok(member(schema, 'properties', 'output', 'properties', 'example') ?? detail.levels === 0)
    }
    const { service } = shippedCatalog()
    const { published } = createChallenge(route, fixedPriceOf(route), { ...settings, service })
    const { info } = bazaarExtension(route, COMPLETE)
    return [member(info, 'output'), member(published, 'resource', 'mimeType')]
  })
  t.strictSame(shown, [
    [{ type: 'json', example: { n: 1 } }, 'application/json'],
    [{ type: 'text', format: 'text/plain' }, 'text/plain'],
    [{ type: 'binary', format: 'application/pdf' }, 'application/pdf'],
    [{ type: 'text', format: 'application/atom+xml' }, 'application/atom+xml'],
    [{ type: 'text', format: 'application/x-ndjson' }, 'application/x-ndjson'],
  ])
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
    { type: 'string', description: 'App id in the store.' },
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
    for (const detail of [COMPLETE, ...detailsOf(route)]) {
      const { info, schema, routeTemplate } = bazaarExtension(route, detail)
      if (!isJsonObject(schema)) throw new Error('no schema')
      const validate = ajv.compile(schema)
      t.ok(validate(info), `${route.path} ${JSON.stringify(detail)}: ${ajv.errorsText(validate.errors)}`)
      if (routeTemplate !== undefined) t.match(routeTemplate, /^\/[a-zA-Z0-9_/:.\-~%]+$/)
    }
  }
})

t.test('describes input and output in the 402 of every route, where probers look', async (t) => {
  const offers = NETWORKS.filter(({ testnet }) => !testnet)
    .slice(0, 4)
    .map((network) => offerOf({ network, payTo: `0x${'1'.repeat(40)}`, timeoutSeconds: 60, testnet: false }))
  const { service } = shippedCatalog()
  for (const route of routes) {
    const price = fixedPriceOf(route)
    const settings = { service, baseUrl: 'https://api.example.com', offers, v1: false, nextToken: () => '' }
    const { published } = createChallenge(route, price, settings)
    const properties = member(published, 'extensions', 'bazaar', 'schema', 'properties')
    t.equal(member(properties, 'input', 'properties', 'queryParams', 'type'), 'object', route.path)
    t.equal(member(properties, 'output', 'properties', 'example', 'type'), 'object', route.path)
    t.ok(isJsonObject(member(published, 'extensions', 'bazaar', 'info', 'output', 'example')), route.path)
  }
})

t.test('lists every route untrimmed, and trims its header without hollow examples', async (t) => {
  const { service } = shippedCatalog()
  const network = NETWORKS.find(({ id }) => id === 'eip155:8453')
  if (network === undefined) throw new Error('no network')
  const offers = [offerOf({ network, payTo: `0x${'1'.repeat(40)}`, timeoutSeconds: 60, testnet: false })]
  const settings = { service, baseUrl: 'https://api.example.com', offers, v1: false, nextToken: () => '' }
  for (const route of routes) {
    const { published, listing } = createChallenge(route, fixedPriceOf(route), settings)
    const { resource } = published
    const { useWhen } = route.operation
    if (useWhen !== undefined) t.match(member(resource, 'description'), `Use when: ${useWhen.slice(0, 20)}`)
    t.strictSame(member(resource, 'tags'), service.tags, route.path)
    t.strictSame(listing.extensions['bazaar'], member(published, 'extensions', 'bazaar'), route.path)
    for (const { description, name } of route.parameters.filter((each) => each.in === 'query')) {
      const properties = member(
        published,
        'extensions',
        'bazaar',
        'schema',
        'properties',
        'input',
        'properties',
      )
      t.equal(member(properties, 'queryParams', 'properties', name, 'description'), description, name)
    }
    for (const detail of [COMPLETE, ...detailsOf(route)].filter(({ members }) => members > 0))
      t.notMatch(
        JSON.stringify(member(bazaarExtension(route, detail), 'info', 'output') ?? {}),
        /[:[](?:\{\}|\[\])[,}\]]/,
        `${route.path} ${JSON.stringify(detail)}`,
      )
  }
})

t.test('keeps what helps to choose and to call in a header of four networks', async (t) => {
  const { service } = shippedCatalog()
  const offers = NETWORKS.filter(({ testnet }) => !testnet)
    .slice(0, 4)
    .map((network) => offerOf({ network, payTo: `0x${'1'.repeat(40)}`, timeoutSeconds: 60, testnet: false }))
  const settings = {
    service,
    baseUrl: 'https://api.example.com',
    offers,
    v1: false,
    nextToken: () => 'x'.repeat(24),
  }
  let [described, tagged, pictured] = [0, 0, 0]
  for (const route of routes) {
    const challenge = createChallenge(route, fixedPriceOf(route), settings)
    const resource = `https://api.example.com${examplePath(route)}`
    const { headers } = challenge.issue({ resource, error: 'payment_required', scope: '' })
    const sent: Json = JSON.parse(Buffer.from(headers['PAYMENT-REQUIRED'] ?? '', 'base64').toString())
    t.match(member(sent, 'accepts'), { length: 4 }, `${route.path} offers every network`)
    t.match(member(sent, 'resource', 'description'), / Use when: /, route.path)
    const bazaar = member(sent, 'extensions', 'bazaar')
    const input = member(bazaar, 'schema', 'properties', 'input', 'properties')
    const shown = route.parameters.map((parameter) => {
      const place = parameter.in === 'path' ? 'pathParams' : 'queryParams'
      const schema = member(input, place, 'properties', parameter.name)
      if (parameter.default !== undefined && parameter.default !== '')
        t.equal(member(schema, 'default'), parameter.default, `${route.path} ${parameter.name}`)
      return member(schema, 'description') !== undefined
    })
    if (shown.includes(true)) described += 1
    if (member(sent, 'resource', 'iconUrl') !== undefined) pictured += 1
    t.strictSame(
      shown,
      [...shown].sort((a, b) => Number(b) - Number(a)),
      `${route.path}: the first parameters are described`,
    )
    if (member(sent, 'resource', 'tags') !== undefined) {
      tagged += 1
      t.notOk(shown.includes(false), `${route.path}: tags go before descriptions`)
    }
    const { example } = route.operation
    const lists = isJsonObject(example) ? Object.entries(example).filter(([, list]) => isRows(list)) : []
    const [name] = lists[0] ?? []
    if (name !== undefined)
      t.match(member(bazaar, 'info', 'output', 'example', name), [{}], `${route.path}: a row of ${name}`)
    t.notMatch(JSON.stringify(member(bazaar, 'info', 'output')), '{}', `${route.path}: nothing hollow`)
  }
  t.ok(described >= 24, `${described} of ${routes.length} describe their parameters`)
  t.ok(pictured >= 16, `${pictured} of ${routes.length} have the icon`)
  t.ok(tagged >= 8, `${tagged} of ${routes.length} have their tags`)
})

function isRows(value: Json): boolean {
  return Array.isArray(value) && isJsonObject(value[0])
}

t.test('shows the icon of the catalog to wallets and registries', async (t) => {
  const { service } = shippedCatalog()
  const [route] = routes
  if (route === undefined) throw new Error('no route')
  for (const [icon, iconUrl] of [
    ['/logo.png', 'https://api.example.com/logo.png'],
    ['https://cdn.example.com/logo.png', 'https://cdn.example.com/logo.png'],
    [undefined, undefined],
  ] as const) {
    const settings = {
      service: { ...service, icon },
      baseUrl: 'https://api.example.com',
      offers: [],
      v1: false,
      nextToken: () => '',
    }
    const challenge = createChallenge(route, fixedPriceOf(route), settings)
    const { published, listing } = challenge
    const { headers } = challenge.issue({
      resource: 'https://api.example.com/x',
      error: 'payment_required',
      scope: '',
    })
    const sent: Json = JSON.parse(Buffer.from(headers['PAYMENT-REQUIRED'] ?? '', 'base64').toString())
    t.equal(member(sent, 'resource', 'iconUrl'), iconUrl)
    t.equal(member(published, 'resource', 'iconUrl'), iconUrl)
    t.equal(listing.resource['iconUrl'], iconUrl)
  }
})
