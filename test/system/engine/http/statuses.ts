import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { SUCCESS_STATUSES } from '../../../../src/engine/base/success-status.ts'
import { listening } from '../../../support/http.ts'
import { addressOf, randomKey, stockFetch } from '../../../support/payment.ts'
import { startServer } from '../../../support/server.ts'
import { payableEnv, startChains } from '../../guards/support/chains.ts'

const chains = await startChains()
/** How often the upstream was asked. */
let runs = 0
const upstream = await listening(
  createServer((request, response) => {
    runs += 1
    const status = Number(request.url?.split('/').at(-1))
    const headers = {
      ...(isEmpty(status) ? {} : { 'Content-Type': 'application/json' }),
      ...(status === 201 ? { Location: '/items/7?part=1' } : {}),
      ...(status === 202 ? { Location: 'https://jobs.example.com/7' } : {}),
    }
    response.writeHead(status, headers).end(isEmpty(status) ? '' : `{"run":${runs}}`)
  }),
)
const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
const [catalog, handlers] = [join(dataDir, 'catalog.yaml'), join(dataDir, 'handlers')]
writeFileSync(
  catalog,
  `catalog: 1
service: { name: Items, version: 1.0.0, description: Answers with each status of success }
payments:
  currency: USD
  x402: { networks: [base], timeout: 60s }
  mpp:
    method: tempo
    intent: charge
    chain: 4217
    currency: '0x20c0000000000000000000000000000000000000'
defaults: { price: 0.01, timeout: 10s }
routes:
  POST /paid/items/{status}:
    handler: proxy
    upstream: ${upstream.url}/items/{status}
    summary: Answers with a status
    parameters: { status: { type: integer, required: true, example: 201 } }
    response: { media_type: application/json, statuses: [201, 204] }
  DELETE /paid/items/{status}:
    handler: proxy
    upstream: ${upstream.url}/items/{status}
    summary: Answers a DELETE with a status
    parameters: { status: { type: integer, required: true, example: 204 } }
  POST /paid/orders:
    handler: orders
    summary: Creates an order
    response: { statuses: [201] }
  POST /paid/wrong:
    handler: wrong
    summary: Returns a status of a redirect
`,
)
mkdirSync(handlers)
writeFileSync(
  join(handlers, 'index.js'),
  `export const handlers = {
  orders: async () => ({ status: 201, source: [{ name: 'orders' }], body: { order: 7 } }),
  wrong: async () => ({ status: 302, source: [{ name: 'orders' }], body: {} }),
}
`,
)
const server = await startServer({
  args: ['--handlers', handlers],
  dataDir,
  env: {
    CATALOG: catalog,
    ...payableEnv(
      chains,
      { base: chains.base.rpcUrl, tempo: chains.tempo.rpcUrl },
      [await chains.signer()],
      randomKey(),
    ),
  },
})
t.teardown(async () => {
  await server.stop()
  await Promise.all([upstream.close(), chains.close()])
  rmSync(dataDir, { recursive: true, force: true })
})

function isEmpty(status: number): boolean {
  return status === 204 || status === 205
}

/** Pays with an unmodified client, and sends the same payment once more. */
async function buyTwice(method: string, path: string) {
  const key = await chains.base.wallet()
  let paid: Headers | undefined
  const transport: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    if (request.headers.has('payment-signature')) paid = request.headers
    return fetch(request)
  }
  const first = await stockFetch(key, transport)(`${server.url}${path}`, { method })
  const texts = [await first.text()]
  const again = await fetch(`${server.url}${path}`, { method, headers: paid ?? {} })
  texts.push(await again.text())
  return { first, again, texts, charged: () => chains.base.charged(addressOf(key)) }
}

for (const method of ['POST', 'DELETE'] as const) {
  t.test(`passes on each status of success of an upstream for a ${method}, also to a retry`, async (t) => {
    for (const status of SUCCESS_STATUSES) {
      const before = runs
      const { first, again, texts, charged } = await buyTwice(method, `/paid/items/${status}`)
      t.equal(first.status, status)
      t.equal(again.status, status, `${status} is redelivered`)
      t.strictSame(texts[1], texts[0])
      t.equal(texts[0], isEmpty(status) ? '' : `{"run":${before + 1}}`)
      t.equal(runs, before + 1)
      t.ok(first.headers.has('payment-response'), 'with a receipt')
      for (const { headers } of [first, again]) {
        t.equal(headers.get('content-type'), isEmpty(status) ? null : 'application/json')
        const location =
          { 201: '/items/7?part=1', 202: 'https://jobs.example.com/7' }[status as number] ?? null
        t.equal(headers.get('location'), location)
      }
      t.equal((await charged()).transfers, 1)
    }
  })
}

t.test('answers with the status of a handler, with its envelope', async (t) => {
  const { first, again, texts, charged } = await buyTwice('POST', '/paid/orders')
  t.equal(first.status, 201)
  t.equal(again.status, 201)
  t.match(JSON.parse(texts[0] ?? ''), { endpoint: '/paid/orders', order: 7 })
  t.equal(texts[1], texts[0])
  t.equal((await charged()).transfers, 1)
})

t.test('charges nothing for a handler that returns another status', async (t) => {
  const { first, charged } = await buyTwice('POST', '/paid/wrong')
  t.equal(first.status, 500)
  t.equal((await charged()).transfers, 0)
})

t.test('states the statuses of a route in OpenAPI', async (t) => {
  const response = await fetch(`${server.url}/openapi.json`)
  const { paths } = (await response.json()) as {
    paths: Record<
      string,
      Record<string, { responses: Record<string, { content?: unknown; headers?: object }> }>
    >
  }
  const { responses = {} } = paths['/paid/items/{status}']?.['post'] ?? {}
  t.strictSame(
    Object.keys(responses).filter((status) => status.startsWith('2')),
    ['201', '204'],
  )
  t.ok(responses['201']?.content)
  t.notOk(responses['204']?.content)
  t.match(responses['201']?.headers, { Location: { schema: { type: 'string' } } })
  t.notOk(Object.hasOwn(responses['204']?.headers ?? {}, 'Location'))
})
