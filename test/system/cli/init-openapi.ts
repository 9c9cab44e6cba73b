import { createServer } from 'node:http'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { shorten } from '../../../src/cli/init/names.ts'
import { type Converted, convertOperations, type ConvertedRoute } from '../../../src/cli/init/operation.ts'
import { readOpenapi } from '../../../src/cli/init/read-openapi.ts'
import { brokenReferences } from '../../../src/cli/init/reference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../src/engine/base/json.ts'
import { runLine } from '../../support/run-command.ts'
import { listening } from '../../support/http.ts'
import { runProgram, serveUnpaid } from '../../support/server.ts'

const PETS = fileURLToPath(new URL('../../fixtures/openapi/pets.yaml', import.meta.url))

t.test(
  'imports an API from its address, which serves without a hand edit when a price is given',
  async (t) => {
    const asked: string[] = []
    const upstream = await listening(
      createServer((request, response) => {
        const { url = '', headers } = request
        if (url === '/openapi.yaml')
          return response.end(readFileSync(PETS, 'utf8').replace('http://127.0.0.1:1', ''))
        asked.push(`${headers.authorization} ${url}`)
        return response.setHeader('content-type', 'application/json').end('{"pets":[]}')
      }),
    )
    t.teardown(() => upstream.close())
    const folder = join(t.testdir(), 'shop')
    const from = ['init', folder, '--from', `${upstream.url}/openapi.yaml`]
    const made = await runProgram([...from, '--price', '0.003', '--exclude', 'PUT *'])
    t.equal(made.code, 0, made.stderr)
    for (const line of [
      /^6 routes of 8 operations$/m,
      /^POST \/pets\/\{petId\}\/photo: left out: it takes a body of multipart\/form-data$/m,
      /^HEAD \/search: left out: its method cannot be sold$/m,
      /^ {2}filter is left out: it is neither/m,
      /^ {2}weight is not held to multipleOf here, only by the API$/m,
      /^ {2}is deprecated$/m,
      /^ {2}api_key is the key of the API: it is a credential, not a parameter$/m,
      /npm run sandbox$/m,
    ])
      t.match(made.stdout, line)
    t.match(await runProgram(['check', join(folder, 'catalog.yaml')]), {
      code: 0,
      stdout: /6 routes, 6 paid/,
    })
    const text = readFileSync(join(folder, 'catalog.yaml'), 'utf8')
    t.match(text, /defaults:\n {2}price: 0\.003\n {2}handler: proxy\n {2}upstream: http:\/\/127/)
    t.match(text, /pet_id: \{ type: integer, example: 1 \} # example generated from the schema/)
    t.match(text, /example: \.\/examples\/get-pets\.json/)
    t.match(text, /example: \.\/examples\/generated\/get-search\.json/)

    const server = await serveUnpaid(t, join(folder, 'catalog.yaml'), [], {
      UPSTREAM_BEARER_AUTH: 'own-key-of-the-operator',
      UPSTREAM_KEY: 'another key',
    })
    for (const path of ['/pets', '/pets/7', '/search?q=rex', '/report.pdf'])
      t.equal((await fetch(server.url + path)).status, 402, path)
    t.equal((await fetch(`${server.url}/pets`, { method: 'POST' })).status, 402)
    t.strictSame(asked, [], 'a buyer who has not paid does not reach the API')
  },
)

t.test('leaves the price to the operator when none is given', async (t) => {
  const folder = join(t.testdir(), 'shop')
  const made = await runProgram(['init', folder, '--from', PETS, '--include', 'GET *'])
  t.match(
    made.stdout,
    /^5 routes of 5 operations; left for you: the price, under "defaults" in catalog\.yaml$/m,
  )
  const refused = await runProgram(['check', join(folder, 'catalog.yaml')])
  t.equal(refused.code, 1)
  t.equal(refused.stdout.match(/has no price: write "price: 0.005" \(USD\)/g)?.length, 1)
})

t.test('refuses what is no OpenAPI document, and writes nothing', async (t) => {
  for (const [text, words] of [
    ['', /neither a JSON nor a YAML object/],
    ['{"open', /neither a JSON nor a YAML object/],
    ['swagger: "1.2"', /is version 1\.2: OpenAPI 3\.0 to 3\.2 and Swagger 2\.0 can be imported/],
    ['{"a":1}', /names no version/],
    ['openapi: 3.1.0', /no operation that can be sold/],
  ] as const) {
    const directory = t.testdir({ 'api.json': text })
    const { code, err } = await runLine(['init', join(directory, 'x'), '--from', join(directory, 'api.json')])
    t.equal(code, 1, text)
    t.match(err, words)
    t.throws(() => readFileSync(join(directory, 'x/catalog.yaml')))
  }
  t.match(await runLine(['init', '/tmp/x', '--from', '/nowhere.json']), { code: 1, err: /nowhere\.json/ })
  t.match(await runLine(['init', '/tmp/x', '--from', 'http://127.0.0.1:1/api.json']), {
    code: 1,
    err: /^ratecard init: http:\/\/127\.0\.0\.1:1\/api\.json cannot be reached$/,
  })
  t.equal((await runLine(['init', '/tmp/x', '--from', PETS, '--price', 'cheap'])).code, 64)
})

const BASE = 'https://api.example'

function convertAll(openapi: JsonObject): Converted[] {
  const broken = brokenReferences(openapi, new Map())
  return convertOperations({ openapi, broken, base: BASE, filter: () => 'wanted' })
}

/** The operations of a document, each as a route. */
function routesOf(given: object): ConvertedRoute[] {
  const openapi: Json = JSON.parse(JSON.stringify({ openapi: '3.1.0', ...given }))
  if (!isJsonObject(openapi)) throw new Error('a document is an object')
  return convertAll(openapi).flatMap((each) => {
    if (each.kind === 'route') return [each]
    throw new Error(`${each.title}: ${each.reason}`)
  })
}

/** The one operation of a document. */
function convert(operation: object, more: object = {}, path = '/a', method = 'get'): ConvertedRoute {
  const [route] = routesOf({ paths: { [path]: { [method]: operation } }, ...more })
  if (route === undefined) throw new Error('there is no operation')
  return route
}

const query = (schema: object, more: object = {}): object => ({
  parameters: [{ name: 'a', in: 'query', schema, ...more }],
})

t.test('keeps what a catalog can say about a parameter', async (t) => {
  const components = { schemas: { Day: { type: 'string', format: 'date' } } }
  for (const [schema, declared] of [
    [
      { type: ['integer', 'null'], default: 3 },
      { type: 'integer', default: 3, example: 3 },
    ],
    [{ anyOf: [{ type: 'string', pattern: '^a$' }, { type: 'null' }] }, { type: 'string', pattern: '^a$' }],
    [{ oneOf: [{ type: 'string' }, { type: 'integer' }] }, { type: 'string' }],
    [
      { type: 'integer', minimum: 0, exclusiveMinimum: true },
      { type: 'integer', exclusiveMinimum: 0 },
    ],
    [
      { type: 'number', exclusiveMinimum: 0 },
      { type: 'number', exclusiveMinimum: 0 },
    ],
    [{ enum: ['x', 'y', null] }, { type: 'string', enum: ['x', 'y'], example: 'x' }],
    [
      { type: 'boolean', default: false },
      { type: 'boolean', default: false, example: false },
    ],
    [{ type: 'string', default: 7 }, { type: 'string' }],
    [{ type: 'string', pattern: '(' }, { type: 'string' }],
    [
      { type: 'integer', maximum: 5, default: 9 },
      { type: 'integer', maximum: 5 },
    ],
    [{ $ref: '#/components/schemas/Day' }, { type: 'string', format: 'date' }],
  ] as const)
    t.strictSame(convert(query(schema), { components }).parameters, [['a', declared]], JSON.stringify(schema))
})

t.test('makes examples of required parameters that keep their rules', async (t) => {
  for (const [schema, example] of [
    [{ type: 'string', pattern: '^AC[0-9a-f]{4}$' }, 'AC0000'],
    [{ type: 'string', pattern: '^v\\d+\\.[a-z]+$' }, 'v0.a'],
    [{ type: 'string', pattern: '^(SM|MM)[0-9a-f]{2}(?:-x)$' }, 'SM00-x'],
    [{ type: 'string', minLength: 10 }, 'examplexxx'],
    [{ type: 'string', format: 'date' }, '2026-01-31'],
    [{ type: 'integer', minimum: 1000 }, 1000],
    [{ type: 'array', items: { type: 'integer', minimum: 7 }, minItems: 2 }, '7,8'],
    [{ type: 'array', items: { type: 'string' }, minItems: 2 }, 'example,example2'],
  ] as const) {
    const [[, declared, comment] = []] = convert(query(schema, { required: true })).parameters
    t.match(declared, { required: true, example })
    t.match(comment, /generated/)
  }
  const hard = convert(query({ type: 'string', pattern: '^(?=.*Z)(a|b){2}Z$' }, { required: true }))
  t.strictSame(hard.parameters[0]?.[1], { type: 'string', example: 'example', required: true })
  t.match(hard.notes, [{ change: 'rule', text: 'a is not held to its pattern here, only by the API' }])
})

t.test('repeats the key of a list, joins what the API joins, and fills headers', async (t) => {
  const ids = { type: 'array', items: { type: 'integer' } }
  const route = convert({
    parameters: [
      { name: 'tag[]', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
      { name: 'ids', in: 'query', explode: false, schema: ids },
      { name: 'StartTime>', in: 'query', schema: { type: 'string' } },
      { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
      { name: 'Accept', in: 'header', schema: { type: 'string' } },
    ],
  })
  t.equal(route.upstream, '/a?tag%5B%5D={tag*}&StartTime%3E={start_time_after}')
  t.strictSame(route.headers, { 'X-Trace': '{x_trace}' })
  t.strictSame(
    route.parameters.map(([name]) => name),
    ['tag', 'ids', 'start_time_after', 'x_trace'],
  )
})

t.test('gives every operation a path and every parameter a name of its own', async (t) => {
  const get = {}
  const routes = routesOf({
    paths: {
      '/compare/{basehead}': { get },
      '/compare/{base_head}': { get, post: {} },
      '/Accounts/{Sid}.json': { get },
      '/Accounts/{Sid}': { get },
      '/v1/{name}:translate': { get },
      '/{a}...{b}': { get },
      '/': { get },
      '/{id}': { get: { parameters: [{ name: 'id', in: 'query', schema: { type: 'string' } }] } },
    },
  })
  t.strictSame(
    routes.map(({ method, path, upstream }) => `${method} ${path} ${upstream}`),
    [
      'GET /compare/{basehead} /compare/{basehead}',
      'GET /compare-2/{base_head} /compare/{base_head}',
      'POST /compare/{base_head} /compare/{base_head}',
      'GET /Accounts/{sid}.json /Accounts/{sid}.json',
      'GET /Accounts/{sid} /Accounts/{sid}',
      'GET /v1/{name}/translate /v1/{name}:translate',
      'GET /{a}/{b} /{a}...{b}',
      'GET /index /',
      'GET /{id} /{id}?id={id_2}',
    ],
  )
})

t.test('ends a long name or summary after a word', async (t) => {
  t.equal(shorten('Developer interface of the pets', 22), 'Developer interface of')
  t.equal(shorten('Developer interface of the pets', 24), 'Developer interface of')
  t.match(
    convert({ summary: 'Returns wonderful pets. '.repeat(20) }).summary,
    /(?: Returns| wonderful| pets\.)…$/,
  )
})

t.test('sells an answer of events or lines as a stream', async (t) => {
  for (const type of ['text/event-stream', 'application/x-ndjson; charset=utf-8'])
    t.strictSame(convert({ responses: { 200: { description: 'ok', content: { [type]: {} } } } }).response, {
      stream: true,
      media_type: type.split(';')[0],
    })
  const both = { 'application/json': {}, 'text/event-stream': {} }
  t.strictSame(convert({ responses: { 200: { description: 'ok', content: both } } }).response, {})
})

t.test('turns the security of an API into a credential', async (t) => {
  const securitySchemes = {
    login: { type: 'http', scheme: 'basic' },
    app: { type: 'apiKey', in: 'header', name: 'X-App' },
    key: { type: 'apiKey', in: 'header', name: 'X_Key' },
    param: { type: 'apiKey', in: 'query', name: 'appid' },
    session: { type: 'apiKey', in: 'cookie', name: 'sid' },
    sign: { type: 'oauth2' },
    seal: { type: 'mutualTLS' },
  }
  for (const [security, credential] of [
    [[{ login: [] }], { basic: { user: 'UPSTREAM_LOGIN_USER', password: 'UPSTREAM_LOGIN_PASSWORD' } }],
    [[{ app: [], key: [] }], { header: { 'X-App': 'UPSTREAM_APP', X_Key: 'UPSTREAM_KEY' } }],
    [[{ session: [] }, { param: [] }], { header: { Cookie: 'UPSTREAM_SESSION' } }],
    [[{ seal: [] }, { param: [] }], { query: { appid: 'UPSTREAM_PARAM' } }],
    [[{ sign: ['read'] }], { bearer: 'UPSTREAM_SIGN' }],
    [[{ sign: ['read'] }, {}], undefined],
  ] as const)
    t.strictSame(convert({ security }, { components: { securitySchemes } }).credential, credential)
  t.throws(() => convert({ security: [{ seal: [] }] }, { components: { securitySchemes } }), {
    message: /it requires seal, which a proxy cannot send/,
  })
  const cookie = convert({ security: [{ session: [] }] }, { components: { securitySchemes } })
  t.match(cookie.notes, [{ text: /UPSTREAM_SESSION is sent as the header Cookie: write "name=value"/ }])
  const declared = {
    parameters: [{ name: 'appid', in: 'query', required: true, schema: { type: 'string' } }],
  }
  t.strictSame(
    convert(declared, { components: { securitySchemes } }).parameters,
    [],
    'a key is not a parameter',
  )
  const undeclared = {
    parameters: [{ name: 'api_key', in: 'query', required: true, schema: { type: 'string' } }],
  }
  t.match(convert(undeclared), { parameters: [], credential: { query: { api_key: 'UPSTREAM_API_KEY' } } })
})

t.test('takes bodies as JSON Schema with a fitting example, as a form, or by their media type', async (t) => {
  const body = (content: object): object => ({ requestBody: { required: true, content } })
  const components = {
    schemas: {
      Node: {
        type: 'object',
        required: ['id', 'name'],
        properties: {
          id: { type: 'integer', readOnly: true },
          name: { type: 'string', nullable: true, example: 'root' },
          size: { type: 'integer', minimum: 0, exclusiveMinimum: true },
          children: { type: 'array', items: { $ref: '#/components/schemas/Node' } },
        },
      },
    },
  }
  const json = convert(
    body({ 'application/json': { schema: { $ref: '#/components/schemas/Node' } } }),
    { components },
    '/a',
    'post',
  )
  t.match(json.body, {
    kind: 'schema',
    schema: {
      $ref: '#/$defs/Node',
      $defs: {
        Node: {
          required: ['name'],
          properties: {
            name: { type: ['string', 'null'] },
            size: { exclusiveMinimum: 0, minimum: undefined },
            children: { items: { $ref: '#/$defs/Node' } },
          },
        },
      },
    },
    example: { value: { name: 'root' }, isGenerated: true },
  })
  const form = {
    type: 'object',
    required: ['To'],
    properties: { To: { type: 'string' }, MediaUrl: { type: 'array', items: { type: 'string' } } },
  }
  t.match(convert(body({ 'application/x-www-form-urlencoded': { schema: form } }), {}, '/a', 'post').body, {
    kind: 'properties',
    properties: [
      ['To', { required: true, example: 'example' }],
      ['MediaUrl', { list: { max_items: 20 } }],
    ],
  })
  t.match(convert(body({ 'image/png': {} }), {}, '/a', 'put').body, { kind: 'media', type: 'image/png' })
  const odd = { schema: { type: 'object', not: {} }, example: { a: 1 } }
  t.match(convert(body({ 'application/json': odd }), {}, '/a', 'post'), {
    body: { kind: 'media', type: 'application/json' },
    notes: [{ change: 'body', text: /no example fits/ }],
  })
})

t.test('leaves out an operation that would always fail, with the reason', async (t) => {
  const needed = { required: true }
  for (const [operation, reason] of [
    [query({ type: 'object' }, needed), /it needs a, which is neither/],
    [query({ type: 'string' }, { ...needed, in: 'cookie' }), /it needs a, which travels as a cookie/],
    [query({ $ref: 'other.yaml#/A' }), /it needs other\.yaml#\/A, which leads to nothing/],
    [query({ $ref: '#/components/schemas/Loop' }), /it needs #\/components\/schemas\/Loop, which leads/],
    [{ parameters: [{ $ref: 'other.yaml#/A' }] }, /it needs other\.yaml#\/A/],
    [
      { requestBody: { content: { 'multipart/form-data': {}, 'multipart/mixed': {} } } },
      /a body of multipart/,
    ],
    [{ security: [{ unknown: [] }] }, /it requires unknown/],
    [{ requestBody: { required: true, content: { 'multipart/form-data': {} } } }, /a body of multipart/],
    [{ responses: { 302: {}, 404: {} } }, /it answers with a redirect/],
    [{ requestBody: { required: true, content: { 'application/json': {} } } }, /a GET that needs a body/],
  ] as const)
    t.throws(
      () => convert(operation, { components: { schemas: { Loop: { $ref: '#/components/schemas/Loop' } } } }),
      {
        message: reason,
      },
    )
})

t.test('reads Swagger 2.0', async (t) => {
  const swagger: JsonObject = {
    swagger: '2.0',
    openapi: '',
    host: 'pets.example',
    basePath: '/v2',
    schemes: ['http', 'https'],
    consumes: ['application/json'],
    produces: ['application/json'],
    securityDefinitions: { login: { type: 'basic' } },
    security: [{ login: [] }],
    definitions: {
      Pet: { type: 'object', required: ['name'], properties: { name: { type: 'string', example: 'Rex' } } },
    },
    parameters: { Limit: { name: 'limit', in: 'query', type: 'integer', maximum: 50 } },
    paths: {
      '/pets': {
        parameters: [{ $ref: '#/parameters/Limit' }],
        get: {
          parameters: [
            {
              name: 'tags',
              in: 'query',
              type: 'array',
              items: { type: 'string' },
              collectionFormat: 'multi',
            },
          ],
          responses: {
            200: { description: '', schema: { type: 'array', items: { $ref: '#/definitions/Pet' } } },
          },
        },
        post: {
          parameters: [{ name: 'pet', in: 'body', required: true, schema: { $ref: '#/definitions/Pet' } }],
        },
        put: {
          consumes: ['application/x-www-form-urlencoded'],
          parameters: [{ name: 'name', in: 'formData', type: 'string', required: true }],
        },
      },
    },
  }
  const read = await readOpenapi({
    text: JSON.stringify({ ...swagger, openapi: undefined }),
    home: new URL('https://pets.example/api.json'),
    read: () => Promise.resolve({ kind: 'fault', reason: 'is not there' }),
  })
  if (read.kind === 'fault') return t.fail(read.sentence)
  t.match(read.openapi, { servers: [{ url: 'https://pets.example/v2' }] })
  const basic = { basic: { user: 'UPSTREAM_LOGIN_USER', password: 'UPSTREAM_LOGIN_PASSWORD' } }
  t.match(convertAll(read.openapi), [
    {
      title: 'GET /pets',
      credential: basic,
      upstream: '/pets?tags={tags*}',
      parameters: [
        ['limit', { type: 'integer', maximum: 50 }],
        ['tags', { list: { max_items: 20 } }],
      ],
      example: { value: [{ name: 'Rex' }], isGenerated: true },
    },
    { title: 'POST /pets', body: { kind: 'schema', example: { value: { name: 'Rex' } } } },
    { title: 'PUT /pets', body: { kind: 'properties', properties: [['name', { required: true }]] } },
  ])
})

t.test('makes an example of its own where the one of the document refers to another', async (t) => {
  const schema = { type: 'object', properties: { id: { type: 'integer', example: 7 } } }
  const value = { configuration: { $ref: '#/components/examples/configuration' } }
  const content = { 'application/json': { schema, examples: { one: { value } } } }
  t.match(convert({ responses: { 200: { content } } }).example, { value: { id: 7 }, isGenerated: true })
})

t.test('keeps the example that a document shows of a text', async (t) => {
  const post = (type: string, media: object): unknown =>
    convert({ requestBody: { content: { [type]: media } } }, {}, '/a', 'post').body
  t.strictSame(post('text/plain', { example: 'Guten Tag\n' }), {
    kind: 'media',
    type: 'text/plain',
    example: 'Guten Tag\n',
  })
  const examples = { one: { value: 'a,b\n1,2' } }
  t.match(post('text/csv', { examples }), { kind: 'media', type: 'text/csv', example: 'a,b\n1,2' })
  t.match(post('text/plain', { schema: { type: 'string', example: 'Hi' } }), { example: 'Hi' })
  t.notOk(Object.hasOwn(Object(post('image/png', { example: 'iVBORw0KGgo=' })), 'example'))
  t.notOk(Object.hasOwn(Object(post('text/plain', { example: 'a'.repeat(1_001) })), 'example'))

  const document = join(t.testdir(), 'openapi.json')
  const operation = { requestBody: { content: { 'text/plain': { example: 'Guten: "Tag"\n' } } } }
  const info = { title: 'Texts', version: '1' }
  const servers = [{ url: 'https://api.example' }]
  writeFileSync(
    document,
    JSON.stringify({
      openapi: '3.1.0',
      info,
      servers,
      paths: { '/a': { post: { ...operation, responses: {} } } },
    }),
  )
  const folder = join(t.testdirName, 'shop')
  const made = await runProgram(['init', folder, '--from', document, '--price', '0.003'])
  t.equal(made.code, 0, made.stderr)
  const { routes } = parse(readFileSync(join(folder, 'catalog.yaml'), 'utf8')) as { routes: object }
  t.match(routes, { 'POST /a': { body: { media_type: 'text/plain', example: 'Guten: "Tag"\n' } } })
  t.match(await runProgram(['check', join(folder, 'catalog.yaml')]), { code: 0 })
})

const TITLE = { info: { title: 'Pets', version: '1' }, servers: [{ url: 'https://api.example' }] }

/** What `init` says of a document in a folder of files, and the catalog that it writes. */
async function importFolder(
  t: Test,
  files: Readonly<Record<string, object | string>>,
  flags: readonly string[] = [],
): Promise<{ stdout: string; catalog: string; read: (path: string) => string }> {
  const texts = Object.entries(files).map(([path, each]): [string, string] => [
    path,
    typeof each === 'string' ? each : JSON.stringify(each),
  ])
  const directory = t.testdir(Object.fromEntries(texts.map(([path]) => [path.split('/')[0] ?? '', {}])))
  for (const [path, text] of texts) {
    rmSync(join(directory, path), { recursive: true, force: true })
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  const folder = join(directory, 'shop')
  const from = ['init', folder, '--from', join(directory, 'api/openapi.yaml'), '--price', '0.001', ...flags]
  const made = await runProgram(from)
  t.equal(made.code, 0, made.stderr)
  t.equal(made.stderr, '')
  t.match(await runProgram(['check', join(folder, 'catalog.yaml')]), { code: 0 })
  const read = (path: string): string => readFileSync(join(folder, path), 'utf8')
  return { stdout: made.stdout, catalog: read('catalog.yaml'), read }
}

t.test('follows references to files of the folder, and says which operations it cannot follow', async (t) => {
  const { stdout, catalog, read } = await importFolder(t, {
    'api/openapi.yaml': {
      openapi: '3.0.3',
      ...TITLE,
      paths: {
        '/pets': { $ref: 'paths/pets.yaml' },
        '/outside': { $ref: '../other/paths.yaml#/outside' },
        '/missing': { $ref: 'paths/missing.yaml' },
        '/elsewhere': { get: { parameters: [{ $ref: 'https://elsewhere.example/a.yaml#/q' }] } },
        '/broken': { post: { requestBody: { $ref: './paths/broken.yaml' } } },
        '/answer': { get: { responses: { 200: { $ref: './gone.yaml' } } } },
      },
    },
    'api/paths/pets.yaml': `
x-weight: !!float 100
parameters: [{ $ref: '../parameters.yaml#/limit' }]
get: { operationId: listPets, responses: { 200: { $ref: '../answers.yaml#/pets' } } }
post:
  operationId: addPet
  requestBody: { content: { application/json: { schema: { $ref: '../models/Pet.yaml' } } } }
`,
    'api/parameters.yaml': 'limit: { name: limit, in: query, schema: { type: integer, maximum: 7 } }',
    'api/answers.yaml': `
pets: { content: { application/json: { schema: { $ref: '#/list' } } } }
list: { type: array, items: { $ref: 'models/Pet.yaml' } }
`,
    'api/models/Pet.yaml': `
type: object
required: [name]
properties:
  name: { type: string, example: Rex }
  parent: { $ref: '#' }
  owner: { $ref: 'Owner.yaml#/Owner' }
`,
    'api/models/Owner.yaml': 'Owner: { type: object, properties: { pets: { $ref: Pet.yaml } } }',
    'api/paths/broken.yaml': 'a: [',
    'other/paths.yaml': 'outside: { get: {} }',
  })
  for (const line of [
    /^\* \/outside: left out: it is described by file:.*\/other\/paths\.yaml#\/outside, which is outside the folder of the document$/m,
    /^\* \/missing: left out: it is described by paths\/missing\.yaml, which is not there or cannot be read$/m,
    /^GET \/elsewhere: left out: it needs https:\/\/elsewhere\.example\/a\.yaml#\/q, which is not a file in the folder of the document$/m,
    /^POST \/broken: left out: it needs paths\/broken\.yaml, which is neither JSON nor YAML$/m,
    /^ {2}shows nothing of gone\.yaml, which is not there or cannot be read$/m,
    /^imported +3\n {2}unchanged +2\n {2}without a description of the answer +1\nleft out +4\n {2}a reference that cannot be followed +4$/m,
    /^3 routes of 7 operations$/m,
  ])
    t.match(stdout, line)
  const { routes } = parse(catalog) as { routes: object }
  t.match(routes, {
    '/pets': {
      name: 'listPets',
      tool: 'api.list_pets',
      parameters: { limit: { type: 'integer', maximum: 7 } },
    },
    'POST /pets': { name: 'addPet', body: { schema: './schemas/post-pets.json' } },
  })
  t.match(JSON.parse(read('schemas/post-pets.json')), {
    $ref: '#/$defs/Pet',
    $defs: { Pet: { required: ['name'], properties: { parent: { $ref: '#/$defs/Pet' } } }, Owner: {} },
  })
  t.match(JSON.parse(read('examples/generated/get-pets.json')), [{ name: 'Rex' }])
})

t.test('follows references on the host of a document, and no redirect to another', async (t) => {
  const upstream = await listening(
    createServer((request, response) => {
      const texts: Readonly<Record<string, string>> = {
        '/api/openapi.json': JSON.stringify({
          openapi: '3.1.0',
          ...TITLE,
          paths: { '/a': { $ref: '../paths.json#/a' }, '/b': { $ref: '/moved.json' } },
        }),
        '/paths.json': '{"a":{"get":{"summary":"A"}}}',
      }
      const text = texts[request.url ?? '']
      if (text === undefined) return response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()
      return response.end(text)
    }),
  )
  t.teardown(() => upstream.close())
  const from = ['init', join(t.testdir(), 'shop'), '--from', `${upstream.url}/api/openapi.json`]
  const { code, stdout } = await runProgram([...from, '--price', '0.001'])
  t.equal(code, 0)
  t.match(
    stdout,
    /^\* \/b: left out: it is described by http:.*\/moved\.json, which answers with status 302$/m,
  )
  t.match(stdout, /^1 route of 2 operations$/m)
})

t.test('leaves out what is about accounts, signing in and administration, unless it is named', async (t) => {
  const get = {}
  const openapi = {
    openapi: '3.1.0',
    ...TITLE,
    components: {
      securitySchemes: {
        login: { type: 'oauth2', flows: { x: { tokenUrl: '/v1/token', scopes: {} } } },
        key: { type: 'http', scheme: 'bearer' },
      },
    },
    paths: {
      '/pets': { get, post: { security: [{ login: ['admin:pets', 'read'] }] } },
      '/pets/{id}': { get: { security: [{ login: ['admin:pets'] }, { login: ['read'] }] } },
      '/pets/authors': { get },
      '/authorities': { get },
      '/v1/accounts/{id}': { get },
      '/pets/next': { get },
      '/pets/last': { get },
      '/v1/account': { get },
      '/users/me': { get },
      '/api-keys': { get },
      '/oauth2/introspect': { get },
      '/auth.test': { get },
      '/auth/get': { post: { operationId: 'authGet', summary: 'Reads account and routing numbers' } },
      '/auth/token': { get },
      '/auth': {
        get: { operationId: 'listAuth' },
        post: {
          requestBody: {
            content: {
              'application/json': {
                schema: { type: 'object', properties: { password: { type: 'string' } } },
              },
            },
          },
        },
      },
      '/token': { post: get },
      '/admin.pets.list': { get },
      '/reports': { get: { tags: ['Admin'] } },
      '/languages': { get: { tags: ['Auth'], summary: 'Lists the languages of a page' } },
      '/plans/{user}': { get: { tags: ['Account'] } },
      '/sessions': { post: { tags: ['Auth'] } },
    },
  }
  const titles = async (...flags: string[]): Promise<string[]> => {
    const { stdout } = await importFolder(t, { 'api/openapi.yaml': openapi }, flags)
    return [...stdout.matchAll(/^(.*): left out: it is about (.*)$/gm)].map(
      ([, title, reason]) => `${title}: ${reason}`,
    )
  }
  t.strictSame(await titles(), [
    'POST /pets: administration',
    'GET /v1/account: the account of the caller',
    'GET /users/me: the account of the caller',
    'GET /api-keys: the account of the caller',
    'GET /oauth2/introspect: signing in',
    'GET /auth.test: signing in',
    'GET /auth/token: signing in',
    'POST /auth: signing in',
    'POST /token: signing in',
    'GET /admin.pets.list: administration',
    'GET /reports: administration',
    'POST /sessions: signing in',
  ])
  t.strictSame(await titles('--include', '*'), [])
})

t.test('imports an API for administrators, in which everything is about administration', async (t) => {
  const paths = Object.fromEntries(['a', 'b', 'c'].map((name) => [`/admin/${name}`, { get: {} }]))
  t.equal(routesOf({ paths }).length, 3)
})

t.test('takes a token for the credential of the shop where the document says so', async (t) => {
  const components = { securitySchemes: { slack: { type: 'oauth2' } } }
  const security = [{ slack: [] }]
  const token = (more: object, place = 'query'): object => ({
    parameters: [{ name: 'token', in: place, required: true, schema: { type: 'string' }, ...more }],
  })
  for (const [operation, more, credential] of [
    [{ ...token({}), security }, { components }, { bearer: 'UPSTREAM_SLACK' }],
    [token({ description: 'Authentication token' }, 'header'), {}, { header: { token: 'UPSTREAM_TOKEN' } }],
    [token({ description: 'Address of the token' }), { components }, undefined],
    [token({}), {}, undefined],
  ] as const) {
    const route = convert(operation, more)
    t.strictSame(route.credential, credential)
    t.equal(route.parameters.length, credential === undefined ? 1 : 0)
  }
  const schema = { type: 'object', properties: { token: { type: 'string' }, text: { type: 'string' } } }
  const form = { requestBody: { content: { 'application/x-www-form-urlencoded': { schema } } }, security }
  t.match(convert(form, { components }, '/a', 'post'), {
    credential: { bearer: 'UPSTREAM_SLACK' },
    body: { kind: 'properties', properties: [['text', {}]] },
    notes: [{ change: 'credential', text: /^token is the key of the API/ }],
  })
  const only = { ...form, security: [] }
  t.throws(() => convert(only, { components }, '/a', 'post'), { message: /it needs your token in its body/ })
})

t.test('names routes and tools by their operationId, each once', async (t) => {
  const routes = routesOf({
    paths: {
      '/a': { get: { operationId: 'Pets.list all' }, post: { operationId: 'pets.list_all' } },
      '/b': { get: {} },
    },
  })
  t.strictSame(
    routes.map(({ name, tool }) => [name, tool]),
    [
      ['Pets.list_all', 'pets_list_all'],
      ['pets.list_all_2', 'pets_list_all_2'],
      [undefined, 'get_b'],
    ],
  )
})

t.test('says in which forms a body is not taken, and which statuses an answer has', async (t) => {
  const content = { 'application/json': {}, 'application/xml': {}, 'multipart/form-data': {} }
  const route = convert({ requestBody: { content }, responses: { 201: {}, 204: {} } }, {}, '/a', 'post')
  t.match(route.notes, [
    { change: 'body', text: 'takes its body in one form only, not as application/xml, multipart/form-data' },
  ])
  t.strictSame(route.response, { statuses: [201, 204] })
})
