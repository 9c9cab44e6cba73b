import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  createRatecard,
  defineService,
  type Ratecard,
  type RatecardOptions,
  type ServiceStores,
} from '../../../src/engine/index.ts'
import { listen } from '../../../src/engine/http/server.ts'

const CATALOG = `catalog: 1
service: { name: Greetings, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base] } }
routes:
  /paid/hello/{name}:
    price: 0.001
    summary: A greeting
    parameters: { name: { type: string, example: Ada } }
    example: { text: Hello Ada }
    sample: true
`
const PAYEE = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const facilitators = [{ url: 'http://127.0.0.1:9' }]
const silent = { warn: () => undefined, error: () => undefined }

function dataDirFor(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

function optionsFor(t: Test): RatecardOptions {
  return {
    catalog: { text: CATALOG },
    baseUrl: 'https://api.example.com',
    handlers: {
      hello: async ({ name }) => ({
        source: [],
        body: { text: `Hello ${typeof name === 'string' ? name : ''}` },
      }),
    },
    payments: { x402: { payTo: PAYEE, facilitators } },
    dataDir: dataDirFor(t),
    logger: silent,
  }
}

async function create(t: Test, more: Partial<RatecardOptions> = {}): Promise<Ratecard> {
  const app = await createRatecard({ ...optionsFor(t), ...more })
  t.teardown(() => app.close())
  return app
}

async function serve(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return `http://localhost:${await listen(server, 0, '127.0.0.1')}`
}

t.test('serves the routes and documents of a catalog that is given as a text', async (t) => {
  const app = await create(t)
  const url = await serve(t, app.callback())
  const unpaid = await fetch(`${url}/paid/hello/Ada`)
  t.equal(unpaid.status, 402)
  t.match(await unpaid.json(), {
    accepts: [{ resource: 'https://api.example.com/paid/hello/Ada' }],
    price: { amount: '0.001000' },
  })
  t.match(await (await fetch(`${url}/sample/hello/Ada`)).json(), { text: 'Hello Ada' })
  t.match(await (await fetch(`${url}/openapi.json`)).json(), {
    info: { title: 'Greetings', version: '1.0.0' },
    paths: { '/paid/hello/{name}': {}, '/sample/hello/{name}': {} },
  })
})

t.test('names all invalid options together, each with its allowed values', async (t) => {
  const rejected = (more: object): Promise<unknown> =>
    createRatecard({ ...optionsFor(t), ...more } as RatecardOptions).then(
      () => 'created',
      (fault: unknown) => fault,
    )
  for (const [more, message] of [
    [{ catalog: undefined }, /^catalog must be the path/],
    [{ baseUrl: 'api.example.com' }, /^baseUrl must be an origin/],
    [{ baseUrl: 'https://api.example.com/v2' }, /^baseUrl must be an origin without a path/],
    [{ basePath: 'shop' }, /^basePath must be a path such as \/shop/],
    [{ basePath: '/shop/' }, /^basePath must be a path/],
    [{ service: {} }, /^service must be what defineService returns/],
    [{ handler: {} }, /^handler is not an option — did you mean "handlers"\?$/],
    [{ ledger: 'postgres://127.0.0.1' }, /^ledger must be a URL: redis:/],
    [{ cache: 'redis://127.0.0.1/names' }, /^the path of cache may be the number of a database/],
    [{ payments: {} }, /^payments\.x402\.payTo is missing/],
    [
      { payments: { x402: { payTo: PAYEE } } },
      /^payments\.x402\.signerKeys is missing.*\(or payments\.x402\.facilitators/,
    ],
    [{ payments: { x402: { payTo: 'me', facilitators } } }, /^payments\.x402\.payTo must be an address/],
    [{ payments: { x402: { payTo: PAYEE.toLowerCase().replace('0x5a', '0x5A'), facilitators } } }, /EIP-55/],
    [{ payments: { x402: { payto: PAYEE, facilitators } } }, /^payments\.x402\.payto is not an option/],
    [
      { payments: { x402: { payTo: PAYEE, signerKeys: [`0x${'2'.repeat(64)}`] } } },
      /^an RPC endpoint is missing; set at least one of payments\.x402\.rpcUrls\['base'\] \(Base\)/,
    ],
    [
      { payments: { x402: { payTo: PAYEE, signerKeys: ['0x12'], rpcUrls: { bass: 'http://127.0.0.1:9' } } } },
      /^payments\.x402\.signerKeys must be.*\npayments\.x402\.rpcUrls\.bass is not a network — did you mean "base"\?$/,
    ],
    [{ payments: { mpp: { recipient: PAYEE, secretKeys: ['short'], rpcUrls: {} } } }, /32 bytes/],
  ] as const) {
    const fault = await rejected(more)
    t.ok(fault instanceof TypeError, JSON.stringify(more))
    t.match(fault instanceof Error ? fault.message : '', message)
  }
})

t.test('rejects a catalog with errors, with every issue and its position', async (t) => {
  const text = CATALOG.replace('price: 0.001', 'price: 0.0000001').replace('summary', 'sumary')
  await t.rejects(createRatecard({ ...optionsFor(t), catalog: { text } }), {
    name: 'CatalogError',
    message: /catalog\.yaml:6:12 price_too_precise[^]*catalog\.yaml:7:5 /,
  })
  await t.rejects(createRatecard({ ...optionsFor(t), catalog: join(t.testdir(), 'none.yaml') }), {
    name: 'CatalogError',
    message: /no such file/,
  })
  await t.rejects(createRatecard({ ...optionsFor(t), handlers: {} }), { message: /handler_unknown/ })
})

t.test(
  'serves a new catalog after a reload, and keeps the old one when the new one has errors',
  async (t) => {
    const folder = t.testdir({ 'catalog.yaml': CATALOG })
    const catalog = join(folder, 'catalog.yaml')
    const app = await create(t, { catalog })
    const url = await serve(t, app.callback())
    const ask = async (path: string): Promise<unknown> => (await fetch(url + path)).json()
    t.match(await ask('/paid/hello/Ada'), { price: { amount: '0.001000' } })
    writeFileSync(catalog, CATALOG.replace('0.001', '0.002'))
    const reloaded = await app.reload()
    t.equal(reloaded.kind, 'reloaded')
    t.not('before' in reloaded ? reloaded.before : '', reloaded.revision)
    t.match(await ask('/paid/hello/Ada'), { price: { amount: '0.002000' } })
    writeFileSync(catalog, 'catalog: 1')
    t.match(await app.reload(), { kind: 'refused', revision: reloaded.revision, reason: /routes/ })
    t.match(await ask('/health'), { revision: reloaded.revision })
    t.match(await ask('/paid/hello/Ada'), { price: { amount: '0.002000' } })
  },
)

t.test('refuses every request below a path prefix uncharged, with the reason', async (t) => {
  const app = await create(t)
  const callback = app.callback()
  const express = await serve(t, (request, response) => {
    // What Express does for `app.use('/api', …)`.
    const prefixed = Object.assign(request, { originalUrl: request.url })
    prefixed.url = request.url?.replace(/^\/api/, '') ?? ''
    callback(prefixed, response)
  })
  for (const path of ['/api/paid/hello/Ada', '/api/openapi.json', '/api/sample/hello/Ada?a=b']) {
    const refused = await fetch(express + path)
    t.equal(refused.status, 500, path)
    t.match(await refused.json(), { code: 'internal', charged: 'no', detail: /mount it at the root/ })
  }
})

interface VisitStores extends ServiceStores {
  readonly visits: Map<string, number>
}

/** A service with settings and a store; `calls` tells what became of the store. */
function countingService(calls: string[]) {
  return defineService({
    env: (variables) => {
      const greeting = variables.text('GREETING')
      if (greeting === undefined) variables.problem('GREETING', 'is missing')
      return { greeting: greeting ?? '' }
    },
    stores: async ({ settings }, { handlers, payments }): Promise<VisitStores> => {
      calls.push(`opened for ${handlers.join()} and ${payments} money by ${settings.greeting}`)
      return {
        visits: new Map<string, number>(),
        lines: [],
        unavailable: { other: 'another process has its store' },
        close: async () => void calls.push('closed'),
      }
    },
    handlers: ({ settings, stores }) => ({
      hello: async ({ name }: { readonly name: string }) => {
        const { visits } = stores()
        const count = (visits.get(name) ?? 0) + 1
        visits.set(name, count)
        return { source: [], body: { text: `${settings.greeting} ${name}`, count } }
      },
      other: async () => ({ source: [], body: { text: 'other' } }),
    }),
  })
}

const FREE = CATALOG.replace(
  '    sample: true\n',
  `    sample: true
  /count/{name}: { price: free, handler: hello, summary: Counts, parameters: { name: { type: string, example: Ada } }, example: { text: Hi, count: 1 } }
  /other: { price: free, handler: other, summary: Another }
`,
)

t.test('hands the stores of a service to its handlers, and closes them after the last answer', async (t) => {
  const calls: string[] = []
  const { handlers: _, ...options } = optionsFor(t)
  const app = await createRatecard({
    ...options,
    catalog: { text: FREE },
    service: countingService(calls),
    secrets: { GREETING: 'Good day' },
  })
  const url = await serve(t, app.callback())
  for (const count of [1, 2])
    t.match(await (await fetch(`${url}/count/Ada`)).json(), { text: 'Good day Ada', count })
  const unavailable = await fetch(`${url}/other`)
  t.equal(unavailable.status, 503)
  t.match(await unavailable.json(), { code: 'not_configured' })
  t.strictSame(calls, ['opened for hello,hello,other and real money by Good day'])
  await app.close()
  t.equal(calls.at(-1), 'closed')
})

t.test('reports what a service says of its variables before its stores open', async (t) => {
  const calls: string[] = []
  await t.rejects(createRatecard({ ...optionsFor(t), service: countingService(calls) }), {
    name: 'OptionError',
    message: 'GREETING is missing',
  })
  t.strictSame(calls, [])
})

t.test('closes the stores of a service when the catalog cannot be served', async (t) => {
  const calls: string[] = []
  const service = countingService(calls)
  await t.rejects(
    createRatecard({
      ...optionsFor(t),
      catalog: { text: FREE },
      service,
      secrets: { GREETING: 'Hi' },
      payments: {},
    }),
    /payTo is missing/,
  )
  t.equal(calls.at(-1), 'closed')
})

t.test('answers 503 uncharged after close', async (t) => {
  const app = await create(t)
  const url = await serve(t, app.callback())
  t.equal((await fetch(`${url}/health`)).status, 200)
  await app.close()
  await app.close()
  const refused = await fetch(`${url}/paid/hello/Ada`)
  t.equal(refused.status, 503)
  t.ok(refused.headers.get('retry-after'))
  t.match(await refused.json(), { code: 'service_stopping', charged: 'no' })
})
