import { createServer } from 'node:http'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { convertOperations } from '../../src/cli/init/operation.ts'
import { runLine } from '../support/command.ts'
import { listening } from '../support/listening.ts'
import { randomKey } from '../support/payment.ts'
import { runProgram, startServer, type RunningServer } from '../support/server.ts'

t.setTimeout(120_000)

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PETS = fileURLToPath(new URL('../fixtures/openapi/pets.yaml', import.meta.url))

/** Nothing is settled here: no endpoint is ever asked. */
async function serve(t: Test, folder: string, ...args: string[]): Promise<RunningServer> {
  const server = await startServer({
    args: ['--catalog', join(folder, 'catalog.yaml'), ...args],
    env: {
      HOST: '127.0.0.1',
      PAY_TO: `0x${'1'.repeat(40)}`,
      SETTLER_PRIVATE_KEY: randomKey(),
      RPC_URL_8453: 'http://127.0.0.1:1',
      UPSTREAM_BEARER_AUTH: 'own-key-of-the-operator',
      UPSTREAM_KEY: 'another key',
    },
  })
  t.teardown(() => server.stop())
  return server
}

t.test('creates a project that passes its checks and sells at once', async (t) => {
  const folder = join(t.testdir(), 'New shop')
  const made = await runProgram(['init', folder])
  t.equal(made.code, 0)
  t.match(made.stdout, `wrote ${folder}/catalog.yaml`)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules/ratecard'))
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  t.equal(manifest.name, 'new-shop')
  t.strictSame(manifest.dependencies, {}, 'there is no release that npm could find')
  t.match(made.stdout, /^next: npm pack && cd .* && npm install .*ratecard-\d.*\.tgz && npm run sandbox$/m)

  const handlers = join(folder, 'handlers')
  const checked = await runProgram(['check', join(folder, 'catalog.yaml')])
  t.match(checked, { code: 0, stdout: /2 routes, 1 paid/ })
  const tsc = (): Buffer =>
    execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { stdio: 'pipe' })
  t.doesNotThrow(tsc)
  t.doesNotThrow(() => execFileSync(process.execPath, ['--test'], { cwd: folder, stdio: 'pipe', env: {} }))

  const server = await serve(t, folder)
  const asked = await fetch(`${server.url}/paid/moon/2026-12-24`)
  t.equal(asked.status, 402)
  t.ok(asked.headers.has('payment-required'))
  t.match(await (await fetch(`${server.url}/sample/moon/2026-12-24`)).json(), { phase: 'full moon', lit: 1 })

  const handler = join(handlers, 'moon.js')
  writeFileSync(handler, readFileSync(handler, 'utf8').replaceAll('date', 'day'))
  t.throws(tsc, 'a handler that takes what the catalog does not give is a compile error')
})

t.test('a new project in TypeScript compiles, checks and tests', async (t) => {
  const folder = join(t.testdir(), 'shop')
  const made = await runProgram(['init', folder, '--typescript'])
  t.equal(made.code, 0, made.stderr)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules/ratecard'))
  symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'))
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { stdio: 'pipe' })
  t.match(await runProgram(['check', join(folder, 'catalog.yaml')]), { code: 0, stdout: /2 routes, 1 paid/ })
  const tested = spawnSync(process.execPath, ['--test', 'test/moon.test.js'], {
    cwd: folder,
    encoding: 'utf8',
    env: {},
  })
  t.match(tested.stdout, /pass 1/)
  const refused = await runProgram([
    'new',
    '/paid/tea',
    '--price',
    '0.01',
    '--catalog',
    join(folder, 'catalog.yaml'),
  ])
  t.match(refused, { code: 1, stderr: /index\.ts is TypeScript/ })
})

t.test('serves an imported API only when every price is set', async (t) => {
  const asked: string[] = []
  const keys: (string | undefined)[] = []
  const upstream = await listening(
    createServer((request, response) => {
      asked.push(request.url ?? '')
      keys.push(request.headers.authorization)
      response.setHeader('content-type', 'application/json').end('{"pets":[]}')
    }),
  )
  t.teardown(() => upstream.close())
  const directory = t.testdir({
    'pets.yaml': readFileSync(PETS, 'utf8').replace('http://127.0.0.1:1', upstream.url),
  })
  const folder = join(directory, 'shop')
  const catalog = join(folder, 'catalog.yaml')
  const made = await runProgram(['init', folder, '--from', join(directory, 'pets.yaml')])
  t.equal(made.code, 0)
  t.match(made.stdout, '3 routes; left for you in catalog.yaml: 3 prices, 2 examples')
  for (const line of [
    'POST /pets: left out, for only GET can be sold',
    'GET /old: left out, for it is deprecated',
    'GET /report.pdf: left out, for it answers with application/pdf',
    'X-Trace is left out: it travels as a header',
    'filter is left out',
    'tags takes one value',
    'weight is not held to multipleOf here',
  ])
    t.match(made.stdout, line)

  const refused = await runProgram(['check', catalog])
  t.equal(refused.code, 1)
  t.equal(refused.stdout.match(/has no price: write "price: 0.005" \(USD\)/g)?.length, 3)
  t.match(refused.stdout, 'pet_id is required and needs an example')

  const text = readFileSync(catalog, 'utf8')
    .replace(/price: #.*/g, 'price: 0.003')
    .replace('pet_id: { type: integer }', 'pet_id: { type: integer, example: 7 }')
    .replace('required: true }', 'required: true, example: rex }')
    .replace('summary: List pets', 'summary: List pets\n    sample: true')
  writeFileSync(catalog, text)
  t.match(await runProgram(['check', catalog]), { code: 0, stdout: /4 routes, 3 paid/ })

  const server = await serve(t, folder)
  for (const path of ['/paid/pets', '/paid/pets/7', '/paid/search?q=rex'])
    t.equal((await fetch(server.url + path)).status, 402, path)
  t.strictSame(asked, [], 'who has not paid does not reach the API')
  t.equal((await fetch(`${server.url}/sample/pets?page_size=5&ids=3,4`)).status, 200)
  const { pathname, searchParams } = new URL(asked[0] ?? '', upstream.url)
  t.equal(pathname, '/v2/pets')
  t.strictSame(
    [...searchParams],
    [
      ['pageSize', '5'],
      ['ids', '3,4'],
    ],
    'what is left out is not sent as an empty text',
  )
  t.strictSame(keys, ['Bearer own-key-of-the-operator'])
})

t.test(
  'keeps the operator’s files, and writes a project completely or leaves the folder empty',
  async (t) => {
    const folder = t.testdir({ handlers: { 'moon.js': 'mine' } })
    const { code, out, err } = await runLine(['init', folder])
    t.equal(code, 1)
    t.equal(out, '')
    t.match(err, /nothing was written: .* already has handlers\/moon\.js/)
    t.equal(readFileSync(join(folder, 'handlers/moon.js'), 'utf8'), 'mine')
    t.throws(() => readFileSync(join(folder, 'catalog.yaml')))
  },
)

t.test('refuses a document other than OpenAPI 3, and leaves the folder empty', async (t) => {
  for (const [text, words] of [
    ['', /neither a JSON nor a YAML object/],
    ['{"open', /neither a JSON nor a YAML object/],
    ['swagger: "2.0"', /is version 2\.0: only OpenAPI 3\.0 and 3\.1 can be imported/],
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
  t.equal((await runLine(['init'])).code, 64)
})

/** One GET, its answer in words. */
function convert(operation: object, more: object = {}, path = '/a'): unknown {
  const openapi = { paths: { [path]: { get: operation } }, ...more }
  return convertOperations(JSON.parse(JSON.stringify(openapi)), 'https://api.example')[0]
}

const query = (schema: object, more: object = {}): object => ({
  parameters: [{ name: 'a', in: 'query', schema, ...more }],
})

t.test('keeps every rule of a parameter that a catalog can express', async (t) => {
  for (const [schema, declared] of [
    [
      { type: ['integer', 'null'], default: 3 },
      { type: 'integer', default: 3, example: 3 },
    ],
    [{ anyOf: [{ type: 'string', pattern: '^a$' }, { type: 'null' }] }, { type: 'string', pattern: '^a$' }],
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
    [{ $ref: '#/components/schemas/Day' }, { type: 'string', format: 'date' }],
  ] as const) {
    const more = { components: { schemas: { Day: { type: 'string', format: 'date' } } } }
    t.match(convert(query(schema), more), { kind: 'route' })
    t.strictSame((convert(query(schema), more) as { draft: { parameters: unknown } }).draft.parameters, [
      ['a', declared],
    ])
  }
})

t.test('leaves out an operation that would always fail, with the reason', async (t) => {
  const needed = { required: true }
  for (const [operation, reason] of [
    [query({ type: 'object' }, needed), /it needs a, which is neither/],
    [query({ type: 'string' }, { ...needed, in: 'cookie' }), /it needs a, which travels as a cookie/],
    [query({ $ref: 'other.yaml#/A' }, needed), /it needs a/],
    [query({ $ref: '#/components/schemas/Loop' }, needed), /it needs a/],
    [{ parameters: [{ $ref: 'other.yaml#/A' }] }, /./],
    [{ responses: { 200: { content: { 'text/html': {} } } } }, /answers with text\/html/],
  ] as const) {
    const more = { components: { schemas: { Loop: { $ref: '#/components/schemas/Loop' } } } }
    const converted = convert(operation, more)
    if (String(reason) === '/./') t.match(converted, { kind: 'route', notes: [/described in another file/] })
    else t.match(converted, { kind: 'left', reason })
  }
  t.match(convert({}, {}, '/a:b'), { kind: 'left', reason: /signs that a route cannot have/ })
  t.match(convert({}, {}, '/{a}'), { kind: 'left' })
  t.match(
    convert(
      { security: [{ basic: [] }] },
      { components: { securitySchemes: { basic: { type: 'http', scheme: 'basic' } } } },
    ),
    {
      kind: 'route',
      notes: [/wants basic, which a proxy cannot send/],
    },
  )
})
