import t from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { compileHarbour, FACTS, HARBOUR, at, items, members, renderJson } from '../../../support/documents.ts'
import type { Json } from '../../../../src/engine/base/json.ts'

const document = renderJson('openapi')
const operations = members(at(document, 'paths')).map(([path, item]) => ({
  path,
  operation: at(item, 'get') ?? null,
}))

function operation(path: string): Json {
  return at(document, 'paths', path, 'get') ?? null
}

/** Every value under a key, however deep. */
function collect(value: Json, key: string): Json[] {
  if (Array.isArray(value)) return value.flatMap((item: Json) => collect(item, key))
  return members(value).flatMap(([name, member]) => [
    ...(name === key ? [member] : []),
    ...collect(member, key),
  ])
}

/** Words an OpenAPI 3.1 reader knows at each place; `x-` words are free. */
const VOCABULARY = {
  root: ['openapi', 'info', 'servers', 'tags', 'paths', 'components'],
  info: ['title', 'version', 'description', 'contact', 'license', 'summary', 'termsOfService'],
  operation: [
    'operationId',
    'summary',
    'description',
    'tags',
    'security',
    'parameters',
    'externalDocs',
    'deprecated',
    'responses',
  ],
  parameter: ['name', 'in', 'required', 'description', 'schema'],
  response: ['description', 'headers', 'content', '$ref'],
  media: ['schema', 'example'],
}

function strangers(value: Json | undefined, place: keyof typeof VOCABULARY): string[] {
  return members(value)
    .map(([name]) => name)
    .filter((name) => !name.startsWith('x-') && !VOCABULARY[place].includes(name))
}

t.test('uses only the keywords of OpenAPI 3.1, at their places', async (t) => {
  t.equal(at(document, 'openapi'), '3.1.0')
  t.strictSame(strangers(document, 'root'), [])
  t.strictSame(strangers(at(document, 'info'), 'info'), [])
  t.strictSame(at(document, 'servers'), [{ url: 'https://harbour.example' }])
  for (const { path, operation } of operations) {
    t.strictSame(strangers(operation, 'operation'), [], path)
    for (const parameter of items(at(operation, 'parameters')))
      t.strictSame(strangers(parameter, 'parameter'), [], path)
    for (const [status, response] of members(at(operation, 'responses'))) {
      t.match(status, /^(?:[1-5]\d\d|[45]XX|default)$/)
      t.strictSame(strangers(response, 'response'), [], path)
      t.ok(typeof at(response, 'description') === 'string' || typeof at(response, '$ref') === 'string', path)
      for (const [, media] of members(at(response, 'content')))
        t.strictSame(strangers(media, 'media'), [], path)
    }
  }
})

t.test('links each route to its page, and a sample to none', async (t) => {
  t.strictSame(at(operation('/paid/tides/{port}'), 'externalDocs'), {
    url: 'https://harbour.example/docs/paid_tides_port',
  })
  t.equal(at(operation('/sample/tides'), 'externalDocs'), undefined)
})

t.test('shows a list that an own handler returns as the answer itself, without an envelope', async (t) => {
  const list = compileHarbour(HARBOUR.replace("example: { time: '12:00' }", "example: ['12:00']"))
  const media = at(renderJson('openapi', list), 'paths', '/clock', 'get', 'responses', '200', 'content')
  t.strictSame(at(media, 'application/json'), {
    schema: { type: ['array', 'null'], items: { type: ['string', 'null'] } },
    example: ['12:00'],
  })
})

t.test('resolves every reference', async (t) => {
  const references = new Set(collect(document, '$ref').filter((value) => typeof value === 'string'))
  t.ok(references.size > 5)
  for (const reference of references) {
    const keys = reference.split('/')
    t.equal(keys.shift(), '#')
    t.not(at(document, ...keys), undefined, reference)
  }
})

t.test('gives generated clients one method a route, with a name of its own', async (t) => {
  const ids = operations.map(({ operation }) => at(operation, 'operationId'))
  t.equal(new Set(ids).size, ids.length)
  for (const id of ids) t.ok(typeof id === 'string' && /^[A-Za-z0-9_-]{1,64}$/.test(id))
  t.ok(ids.includes('paid_tides_port'))
})

t.test('orders paid routes first, then previews, free routes and documents', async (t) => {
  t.strictSame(
    operations.map(({ path }) => path),
    [
      '/paid/tides/{port}',
      '/paid/ships/moves',
      '/paid/berths/{berth}',
      '/sample/tides',
      '/sample/ships/moves',
      '/clock',
      ...Object.values(compileHarbour().documents).flatMap(({ paths, planned }) => (planned ? [] : paths)),
    ],
  )
})

t.test('leaves documents out where the catalog says so', async (t) => {
  const short = renderJson('openapi', compileHarbour(`${HARBOUR}openapi_documents: omit\n`))
  const left = operations.filter(({ operation }) => at(operation, 'x-document') === undefined)
  t.strictSame(
    members(at(short, 'paths')).map(([path]) => path),
    left.map(({ path }) => path),
  )
  t.notMatch(JSON.stringify(at(short, 'tags')), 'discovery')
  t.match(at(short, 'x-documents'), { index: ['/'], openapi: ['/openapi.json'] }, 'names where they are')
})

t.test('tells probers which routes cost money', async (t) => {
  for (const { path, operation } of operations) {
    const paid = path.startsWith('/paid/')
    t.strictSame(at(operation, 'security'), [], path)
    t.equal(at(operation, 'x-payment-info') !== undefined, paid, path)
    t.equal(at(operation, 'responses', '402') !== undefined, paid, path)
    t.equal(at(operation, 'responses', '200', 'headers', 'PAYMENT-RESPONSE') !== undefined, paid, path)
    t.equal(typeof at(operation, 'summary'), 'string', path)
    t.equal(typeof at(operation, 'description'), 'string', path)
  }
  t.strictSame(at(operation('/paid/tides/{port}'), 'x-payment-info', 'protocols'), [{ x402: {} }])
})

t.test('declares 422 wherever there are parameters', async (t) => {
  for (const { path, operation } of operations) {
    const takes = items(at(operation, 'parameters')).length > 0
    const response = at(operation, 'responses', '422')
    t.strictSame(response, takes ? { $ref: '#/components/responses/HTTPValidationError' } : undefined, path)
  }
  t.strictSame(at(document, 'components', 'schemas', 'ValidationError', 'required'), ['loc', 'msg', 'type'])
})

t.test('lets clients fill in a request from the schemas alone', async (t) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  for (const { path, operation } of operations) {
    const parameters = items(at(operation, 'parameters'))
    const inPath = parameters.flatMap((parameter) =>
      at(parameter, 'in') === 'path' ? [at(parameter, 'name')] : [],
    )
    t.strictSame(
      inPath,
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      path,
    )
    for (const parameter of parameters) {
      const schema = at(parameter, 'schema') ?? null
      const value = at(schema, 'default') ?? at(schema, 'examples', 0)
      if (at(parameter, 'required') === true) t.not(value, undefined, path)
      if (value !== undefined) t.ok(ajv.validate(Object.fromEntries(members(schema)), value), path)
    }
  }
  const [ports, kind] = items(at(operation('/paid/ships/moves'), 'parameters'))
  t.equal(at(ports, 'description'), 'Comma-separated, 1 to 3 values.')
  t.equal(at(kind, 'description'), 'Also understood: in for arrivals.')
})

t.test('accepts an empty default by the rules of its parameter, as a request does', async (t) => {
  const text = HARBOUR.replace(
    "since: { type: string, default: '', format: date }",
    "flag: { type: string, default: '', format: country, minLength: 2 }\n      size: { type: string, default: '', enum: [s, m] }",
  )
  const path = at(renderJson('openapi', compileHarbour(text)), 'paths', '/paid/ships/moves', 'get')
  const [, , flag, size] = items(at(path, 'parameters'))
  t.equal(at(flag, 'schema', 'pattern'), '^$|^[A-Z]{2}$')
  t.equal(at(flag, 'schema', 'minLength'), undefined)
  t.strictSame(at(size, 'schema', 'enum'), ['', 's', 'm'])
})

t.test('gives examples that are real answers and match the declared schema', async (t) => {
  const schemaOf = (path: string) => at(operation(path), 'responses', '200', 'content', 'application/json')
  const tides = schemaOf('/paid/tides/{port}')
  t.strictSame(at(tides, 'example'), {
    endpoint: '/paid/tides/{port}',
    source: [{ name: 'Tide tables', url: 'https://tides.example' }],
    fetched_at: '2026-03-05T00:00:00.000Z',
    cached: false,
    cache_ttl_seconds: 600,
    warnings: [],
    port: 'bristol',
    waters: [
      { kind: 'high', height_m: 12.1 },
      { kind: 'low', height_m: 2, note: 'spring' },
    ],
    sunrise: null,
  })
  t.strictSame(at(tides, 'schema'), {
    type: 'object',
    additionalProperties: true,
    allOf: [{ $ref: '#/components/schemas/Envelope' }],
    properties: {
      port: { type: ['string', 'null'] },
      waters: {
        type: ['array', 'null'],
        items: {
          type: ['object', 'null'],
          additionalProperties: true,
          properties: {
            kind: { type: ['string', 'null'] },
            height_m: { type: ['number', 'null'] },
            note: { type: ['string', 'null'] },
          },
        },
      },
      sunrise: {},
    },
  })
  t.strictSame(schemaOf('/sample/tides'), { schema: { $ref: '#/components/schemas/Preview' } })
  t.strictSame(at(schemaOf('/paid/berths/{berth}'), 'example'), [{ ship: 'Aurora' }], 'a proxy adds nothing')
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(document, 'openapi')
  for (const { path, operation } of operations) {
    if (at(operation, 'responses', '200', 'content', 'application/json', 'example') === undefined) continue
    const place = ['paths', path, 'get', 'responses', '200', 'content', 'application/json', 'schema']
    const pointer = place
      .map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/')
    const validate = ajv.compile({ $ref: `openapi#/${pointer}` })
    const example = at(operation, 'responses', '200', 'content', 'application/json', 'example')
    t.ok(validate(example), `${path} ${JSON.stringify(validate.errors)}`)
  }
})

const STAY =
  '{ type: object, required: [quay], properties: { quay: { type: string, description: Where }, hours: { type: number } } }'

/** The harbour with a declared answer in which two members are alike. */
const DECLARED = HARBOUR.replace(
  "    example: { time: '12:00' }\n",
  `    example: { now: { quay: A1 }, next: { quay: A2 } }
    response: { schema: { type: object, required: [now], properties: { now: ${STAY}, next: ${STAY} } } }
`,
)

t.test(
  'shows of a declared answer its shape, what answers have in common once, and no example',
  async (t) => {
    const declared = renderJson('openapi', compileHarbour(DECLARED))
    const media = at(declared, 'paths', '/clock', 'get', 'responses', '200', 'content', 'application/json')
    const shared = { $ref: '#/components/schemas/now' }
    t.strictSame(media, {
      schema: {
        allOf: [{ $ref: '#/components/schemas/Envelope' }],
        type: 'object',
        properties: { now: shared, next: shared },
      },
    })
    t.strictSame(at(declared, 'components', 'schemas', 'now'), {
      type: 'object',
      properties: { quay: { type: 'string' }, hours: { type: 'number' } },
    })
  },
)

t.test('links the free preview of a paid route and describes it', async (t) => {
  t.equal(at(operation('/paid/tides/{port}'), 'x-free-preview'), '/sample/tides')
  t.equal(at(operation('/paid/berths/{berth}'), 'x-free-preview'), undefined)
  t.match(at(operation('/sample/tides'), 'description'), 'Free preview of /paid/tides/{port}')
})

t.test('tells an agent when to use a route, how fresh it is and what is charged', async (t) => {
  t.equal(
    at(operation('/paid/tides/{port}'), 'description'),
    [
      'Use when: You plan an arrival and know the port.',
      'Heights are in metres above chart datum.',
      'Cached for 10 minutes.',
      'Price: $0.005 per call.',
    ].join('\n\n'),
  )
  t.match(
    at(document, 'components', 'responses', 'PaymentRequired', 'description'),
    'You pay for a 200 only. Errors say under "charged" whether money moved',
    'what holds for every route is said once',
  )
  t.match(at(operation('/paid/ships/moves'), 'description'), /^Use when you watch several ports at once\./)
})

t.test('marks a route without its source, and its preview, as unavailable', async (t) => {
  const down = renderJson('openapi', compileHarbour(), {
    ...FACTS,
    available: ({ id }) => id !== 'ships/moves',
  })
  for (const path of ['/paid/ships/moves', '/sample/ships/moves'])
    t.equal(at(down, 'paths', path, 'get', 'x-available'), false)
  t.equal(at(down, 'paths', '/paid/tides/{port}', 'get', 'x-available'), undefined)
})

t.test('declares the second protocol as soon as it is configured', async (t) => {
  const both = renderJson('openapi', compileHarbour(), { ...FACTS, protocols: ['x402', 'mpp'] })
  const route = at(both, 'paths', '/paid/ships/moves', 'get')
  t.strictSame(at(route, 'x-payment-info', 'protocols'), [
    { x402: {} },
    {
      mpp: { method: 'tempo', intent: 'charge', currency: '0x20C000000000000000000000b9537d11c60E8b50' },
    },
  ])
  t.strictSame(
    at(route, 'x-payment-info', 'offers'),
    [
      {
        intent: 'charge',
        method: 'tempo',
        amount: '250000',
        currency: '0x20C000000000000000000000b9537d11c60E8b50',
      },
    ],
    'atomic units, as the discovery draft of MPP reads them',
  )
  t.equal(
    at(document, 'paths', '/paid/ships/moves', 'get', 'x-payment-info', 'offers'),
    undefined,
    'nothing is offered that cannot be paid',
  )
  t.strictSame(at(both, 'components', 'responses', 'PaymentRequired', 'headers'), {
    'PAYMENT-REQUIRED': { $ref: '#/components/headers/PAYMENT-REQUIRED' },
    'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' },
  })
  t.strictSame(
    members(at(route, 'responses', '200', 'headers')).map(([name]) => name),
    ['PAYMENT-RESPONSE', 'Payment-Receipt'],
  )
})

t.test('carries the guidance of the catalog, or how to pay', async (t) => {
  t.match(at(document, 'info', 'x-guidance'), 'PAYMENT-SIGNATURE')
  const own = compileHarbour(HARBOUR.replace('  tags:', '  guidance: Ask for tides first.\n  tags:'))
  t.equal(at(renderJson('openapi', own), 'info', 'x-guidance'), 'Ask for tides first.')
  t.strictSame(at(document, 'info', 'contact'), { email: 'harbour@example.com' })
  t.equal(at(document, 'info', 'version'), '1.4.0')
})

t.test('tags routes by the categories of the catalog, with their descriptions', async (t) => {
  t.strictSame(at(document, 'tags'), [
    { name: 'tides', description: 'Tides & currents' },
    { name: 'ships', description: 'Ships' },
    { name: 'discovery', description: 'Documents about the service itself' },
  ])
})

t.test('gives registries the guide, the categories and the proof of ownership', async (t) => {
  t.strictSame(at(document, 'info', 'license'), { name: 'MIT', identifier: 'MIT' })
  t.strictSame(at(document, 'x-service-info'), {
    categories: ['tides', 'ships'],
    docs: {
      homepage: 'https://harbour.example',
      apiReference: 'https://harbour.example/docs',
      llms: 'https://harbour.example/llms.txt',
    },
  })
  t.strictSame(at(document, 'x-agentcash-guidance'), { llmsTxtUrl: 'https://harbour.example/llms.txt' })
  const proofs = { ownershipProofs: compileHarbour().service.ownershipProofs }
  t.strictSame(at(document, 'x-agentcash-provenance'), proofs)
  t.strictSame(at(document, 'x-discovery'), proofs)
})

t.test('claims ownership only with a proof in the catalog', async (t) => {
  const silent = renderJson('openapi', compileHarbour(HARBOUR.replace(/ {2}ownership_proofs:.*\n/, '')))
  t.equal(at(silent, 'x-agentcash-provenance'), undefined)
  t.equal(at(silent, 'x-discovery'), undefined)
})
