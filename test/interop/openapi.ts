import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { validate } from '@readme/openapi-parser'
import { countTokens } from 'gpt-tokenizer'
import t from 'tap'
import { at, items, members } from '../support/documents.ts'
import {
  atomic,
  BASE_URL,
  lastingHeaders,
  openProductionService,
  paid,
  samples,
  textAt,
} from './support/shipped-service.ts'
import { runTool } from './support/tool.ts'

// Linters of whole documents take seconds each.

const service = await openProductionService(t)
const text = await service.read('/openapi.json')
const document = await service.readJson('/openapi.json')
const paths = members(at(document, 'paths'))
const file = join(t.testdir(), 'openapi.json')
writeFileSync(file, text)

t.test('answers a registry that polls with 304', async (t) => {
  const whole = await service.ask('/openapi.json')
  t.equal(whole.status, 200)
  t.match(whole.headers.get('content-type'), /^application\/json/)
  t.match(whole.headers.get('cache-control'), /public, max-age=\d+/)
  t.equal(whole.headers.get('access-control-allow-origin'), '*')
  const head = await service.ask('/openapi.json', { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(whole.headers.get('content-encoding'), 'gzip')
  t.strictSame(lastingHeaders(head), lastingHeaders(whole))
  const etag = whole.headers.get('etag') ?? ''
  t.match(etag, /^W\/"[^"]+"$/)
  const again = await service.ask('/openapi.json', { headers: { 'If-None-Match': etag } })
  t.equal(again.status, 304)
  t.equal(await again.text(), '')
})

t.test('serves a document that generators and viewers accept as OpenAPI 3.1', async (t) => {
  t.match(await validate(file), { valid: true, warnings: [], specification: 'OpenAPI' })

  const redocly = await runTool('@redocly/cli/bin/cli.js', ['lint', file, '--format=json'])
  const report: { totals: { errors: number }; problems: { severity: string; ruleId: string }[] } = JSON.parse(
    redocly.out,
  )
  t.equal(report.totals.errors, 0, redocly.out.slice(0, 2000))
  const rules = new Set(report.problems.map(({ ruleId }) => ruleId))
  // The address is one of the documentation’s own, and what takes no parameter has no way to go wrong.
  for (const rule of rules)
    t.ok(['no-server-example.com', 'operation-4xx-response', 'info-license'].includes(rule), rule)

  const ruleset = join(t.testdir(), 'ruleset.yaml')
  writeFileSync(ruleset, 'extends: ["spectral:oas"]\n')
  const spectral = await runTool('@stoplight/spectral-cli/dist/index.js', [
    'lint',
    file,
    '--ruleset',
    ruleset,
    '--format=json',
    '--quiet',
  ])
  const found: { code: string; path: string[] }[] = JSON.parse(spectral.out)
  t.strictSame(
    found.map(({ code, path }) => `${code} ${path.join('.')}`),
    [],
  )
})

t.test('describes exactly the routes that can be called', async (t) => {
  const routes = paths.filter(([path]) => /^\/(?:paid|sample)\//.test(path)).map(([path]) => path)
  t.strictSame(routes.toSorted(), [...paid, ...samples].map(({ path }) => path).toSorted())
  for (const [path, item] of paths)
    t.strictSame(
      members(item).map(([method]) => method),
      ['get'],
      path,
    )
  for (const { path, parameters } of [...paid, ...samples]) {
    const declared = items(at(document, 'paths', path, 'get', 'parameters')).map((each) => ({
      name: at(each, 'name'),
      type: at(each, 'schema', 'type'),
      in: at(each, 'in'),
      required: at(each, 'required') ?? false,
      default: at(each, 'schema', 'default'),
    }))
    t.strictSame(declared, parameters, path)
  }
})

t.test(
  'gives each call a name, a description and its security for generators, agents and registries',
  async (t) => {
    const ids = paths.map(([, item]) => textAt(at(item, 'get', 'operationId')))
    t.equal(new Set(ids).size, ids.length)
    for (const [path, item] of paths) {
      t.match(at(item, 'get', 'operationId'), /^[A-Za-z0-9_-]{1,64}$/, path)
      t.match(at(item, 'get', 'summary'), /\S/, path)
      t.strictSame(at(item, 'get', 'security'), [], path)
    }
  },
)

t.test('states the price of each route by both protocols', async (t) => {
  const currency = '0x20C000000000000000000000b9537d11c60E8b50'
  for (const { path, price } of paid) {
    const operation = at(document, 'paths', path, 'get')
    t.strictSame(
      at(operation, 'x-payment-info'),
      {
        price: { mode: 'fixed', currency: 'USD', amount: Number(price).toFixed(6) },
        protocols: [{ x402: {} }, { mpp: { method: 'tempo', intent: 'charge', currency } }],
        offers: [{ intent: 'charge', method: 'tempo', amount: atomic(price), currency }],
      },
      path,
    )
    t.ok(at(operation, 'responses', '402'), path)
  }
  const priced = paths.filter(([, item]) => at(item, 'get', 'x-payment-info') !== undefined)
  t.strictSame(priced.map(([path]) => path).toSorted(), paid.map(({ path }) => path).toSorted())
})

t.test('declares the 422 that a generated client meets', async (t) => {
  for (const [path, item] of paths) {
    const { length } = items(at(item, 'get', 'parameters'))
    const response = at(item, 'get', 'responses', '422', '$ref')
    t.equal(response, length === 0 ? undefined : '#/components/responses/HTTPValidationError', path)
  }
  const described = at(document, 'components', 'responses', 'HTTPValidationError', 'content')
  t.strictSame(at(described, 'application/json', 'schema'), {
    $ref: '#/components/schemas/HTTPValidationError',
  })
  const components = at(document, 'components', 'schemas')
  t.strictSame(at(components, 'ValidationError', 'required'), ['loc', 'msg', 'type'])
  t.equal(
    at(components, 'HTTPValidationError', 'properties', 'detail', 'items', '$ref'),
    '#/components/schemas/ValidationError',
  )
})

t.test('serves a description that mppx accepts', async (t) => {
  const { code, out, err } = await runTool('mppx/dist/bin.js', [
    'discover',
    'validate',
    `${service.url}/openapi.json`,
  ])
  t.equal(code, 0, out + err)
})

t.test('fits into the memory of a model: at most 30,000 tokens', async (t) => {
  t.ok(countTokens(text) <= 30_000, `${countTokens(text)} tokens`)
})

t.test('tells an agent whom to ask, how to begin and where the service is', async (t) => {
  t.equal(at(document, 'info', 'version'), '1.0.0')
  t.ok(at(document, 'info', 'contact', 'email') ?? at(document, 'info', 'contact', 'url'))
  const guidance = textAt(at(document, 'info', 'x-guidance'))
  t.ok(guidance.length >= 1 && guidance.length <= 4000, `${guidance.length} characters`)
  // A path in it would be put before every path of the document.
  t.strictSame(at(document, 'servers'), [{ url: BASE_URL }])
})
