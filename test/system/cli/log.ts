import t from 'tap'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openMetrics } from '../../../src/cli/metrics.ts'
import { isJsonObject, type JsonObject } from '../../../src/engine/base/json.ts'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { textOf } from '../../support/markdown.ts'
import { openBuyer } from '../../support/buyer.ts'
import { listening } from '../../support/http.ts'
import { makeRecord, nextRecord } from '../../support/payment-records.ts'
import { addressOf, challengeOf, send, sign } from '../../support/payment.ts'
import { Secrets } from '../../support/secrets.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const failing = await listening(createHttpServer((_, response) => response.writeHead(500).end()))
t.teardown(() => failing.close())

const CATALOG = `catalog: 1
service: { name: Watched shop, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base], timeout: 60s } }
sources: { upstream: { title: Upstream, licence: None, resale: allowed } }
routes:
  /paid/work:
    price: 0.01
    summary: Works where the test says how
    sources: [upstream]
    cache: 10m
    parameters: { n: { type: integer, default: 1, minimum: 1, maximum: 1000 } }
    example: { n: 1 }
    sample: true
  /paid/slow:
    price: 0.02
    handler: work
    summary: The same without a cache
    parameters: { n: { type: integer, default: 1, minimum: 1, maximum: 1000 } }
    example: { n: 1 }
  /paid/talk:
    price: 0.02
    summary: Fails with words that repeat an argument
    parameters: { name: { type: string, default: nobody } }
    example: { n: 1 }
  /paid/passed:
    price: 0.02
    summary: Is answered by an API
    handler: proxy
    upstream: ${failing.url}/
    parameters: { n: { type: integer, default: 1, minimum: 1, maximum: 1000 } }
    example: { n: 1 }
  /paid/unset:
    price: 0.02
    summary: Has no credentials
    parameters: { n: { type: integer, default: 1, minimum: 1, maximum: 1000 } }
    example: { n: 1 }
documents: { health: /health, llms: /llms.txt }
`
const TOKEN = 'a-token-for-scrapers-only'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : 0
}

const directory = mkdtempSync(join(tmpdir(), 'ratecard-log-'))
writeFileSync(join(directory, 'catalog.yaml'), CATALOG)
const metricsPort = await freePort()
const HANDLERS = fileURLToPath(new URL('../../fixtures/log/handlers', import.meta.url))
const shop = await openShop(
  async () => ({
    CATALOG: join(directory, 'catalog.yaml'),
    METRICS_PORT: String(metricsPort),
    METRICS_TOKEN: TOKEN,
    TRUST_PROXY: '1',
  }),
  ['--handlers', HANDLERS],
)
const secrets = new Secrets()
secrets.add('an RPC endpoint', shop.node.url)
secrets.add('the signer’s key', shop.signerKey.slice(2))
secrets.add('the token of the metrics', TOKEN)
t.teardown(async () => {
  await shop.close()
  rmSync(directory, { recursive: true, force: true })
})

/** Lines of requests in the order of their answers. */
function lines(): JsonObject[] {
  return shop
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line): unknown => JSON.parse(line))
    .filter(isJsonObject)
}

const lineOf = (like: JsonObject): JsonObject | undefined =>
  lines().findLast((line) => Object.entries(like).every(([name, value]) => line[name] === value))

async function metrics(): Promise<string> {
  return (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
}

function valueOf(text: string, name: string, ...labels: readonly string[]): number {
  const line = text
    .split('\n')
    .find((each) => each.startsWith(name) && labels.every((label) => each.includes(label)))
  return Number(line?.split(' ').at(-1) ?? Number.NaN)
}

t.test('logs the outcome and the revenue of each request', async (t) => {
  const buyer = openBuyer(await shop.wallet(), secrets)
  // Behind a proxy the same buyer would get the first answer once more.
  const other = openBuyer(await shop.wallet(), secrets)
  t.match(await buyer.buy(`${shop.url}/paid/work?n=77`), { status: 200 })
  t.match(await other.buy(`${shop.url}/paid/work?n=77`), { status: 200 })
  t.equal((await fetch(`${shop.url}/paid/work?n=none`)).status, 402)
  t.equal((await fetch(`${shop.url}/sample/work?n=none`)).status, 422)
  t.equal((await fetch(`${shop.url}/secret-path-of-a-caller?key=hunter2`)).status, 404)
  t.equal((await fetch(`${shop.url}/llms.txt`)).status, 200)
  await until('all of it is written', () => lineOf({ route: '/llms.txt' }) !== undefined)
  const work = { method: 'GET', route: '/paid/work', price: '0.01' }
  t.match(lineOf({ ...work, status: 402 }), {
    level: 'info',
    outcome: 'payment_required',
    ms: Number,
    time: /Z$/,
  })
  t.match(lineOf({ ...work, outcome: 'ok', cache: 'miss' }), { status: 200, payment: /^pay_/ })
  t.match(lineOf({ ...work, outcome: 'ok', cache: 'hit' }), { status: 200, payment: /^pay_/ })
  t.match(lineOf({ route: '/sample/work' }), { status: 422, outcome: 'parameters_invalid' })
  t.match(lineOf({ status: 404 }), { route: 'unknown', outcome: 'route_not_found' })
  t.equal(await shop.onchain.charges(buyer.address), 1)
  t.equal(await shop.onchain.charges(other.address), 1)
})

t.test('logs a failing source as a warning without its text, and charges nothing', async (t) => {
  shop.upstream.during(() => Promise.reject(new Error('no')))
  const key = await shop.wallet()
  const bought = await openBuyer(key, secrets).buy(`${shop.url}/paid/work?n=13`)
  t.equal(bought.status, 500)
  await until('it is written', () => lineOf({ status: 500 }) !== undefined)
  const line = lineOf({ status: 500 })
  t.match(line, { route: '/paid/work', level: 'error', outcome: 'internal' })
  t.match(line, { detail: /^something went wrong here/ })
  t.equal(await shop.onchain.charges(addressOf(key)), 0)
  shop.upstream.during(async () => undefined)
})

t.test('says why in the line of every 5xx, without the words of a handler', async (t) => {
  shop.upstream.during(() => Promise.reject(new Error('no')))
  const key = await shop.wallet()
  for (const [path, status, line] of [
    ['/paid/talk?name=a-private-name', 502, { outcome: 'source_error', detail: 'Bad upstream response' }],
    ['/paid/passed', 502, { outcome: 'source_error', detail: 'the upstream answered with status 500' }],
    [
      '/paid/unset',
      503,
      { outcome: 'not_configured', detail: 'a source of this route has no credentials here' },
    ],
  ] as const) {
    t.equal((await openBuyer(key, secrets).buy(shop.url + path)).status, status, path)
    await until('it is written', () => lineOf({ ...line, status }) !== undefined)
  }
  t.notMatch(shop.output(), 'a-private-name')
  for (const { status, detail } of lines()) t.equal(Number(status) >= 500, detail !== undefined)
  shop.upstream.during(async () => undefined)
})

t.test('exposes requests, payments and revenue from the ledger as metrics', async (t) => {
  const text = await metrics()
  const value = (name: string, ...labels: readonly string[]): number => valueOf(text, name, ...labels)
  t.equal(value('ratecard_requests_total', 'route="/paid/work"', 'outcome="ok"'), 2)
  t.ok(value('ratecard_requests_total', 'route="/paid/work"', 'outcome="payment_required"') >= 4)
  t.equal(value('ratecard_payments_total', 'outcome="settled"', 'network="eip155:8453"'), 2)
  t.equal(value('ratecard_revenue_total', 'token="USDC"'), 0.02)
  t.equal(value('ratecard_cache_answers_total', 'result="hit"'), 1)
  t.equal(value('ratecard_payments_unknown'), 0)
  const balance = value('ratecard_signer_balance', 'network="eip155:8453"', shop.signer, 'coin="ETH"')
  t.ok(balance > 0.9 && balance < 1, 'a coin, less the gas of two payments')
  t.equal(value('ratecard_gas_lost_last_hour', 'network="eip155:8453"'), 0)
  t.equal(value('ratecard_signer_oldest_unmined_seconds', 'network="eip155:8453"'), 0)
  t.equal(value('ratecard_network_closed', 'network="eip155:8453"'), 0)
  t.ok(value('ratecard_rpc_requests_total', 'network="eip155:8453"') > 0)
  t.ok(value('ratecard_ledger_bytes') > 0)
  t.ok(value('ratecard_request_duration_seconds_count', 'route="/paid/work"') > 0)
  for (const file of ['alerts.yml', 'grafana.json']) {
    const used = new Set(textOf(`deploy/${file}`).match(/\b(?:ratecard|nodejs|process)_\w+/g))
    t.ok(used.size >= 10)
    for (const name of used) {
      const metric = name.replace(/_bucket$/, '')
      t.match(text, new RegExp(`^# TYPE ${metric} `, 'm'), `${file} asks for ${name}`)
    }
  }
  t.match(text, /^nodejs_eventloop_lag_seconds /m)
  t.match(text, /^process_resident_memory_bytes /m)
  t.notMatch(text, /secret-path|hunter2|n=77/)
  secrets.scan(text)
})

t.test('sums revenue exactly', async (t) => {
  const ledger = await openLmdbLedger(join(t.testdir(), 'ledger'))
  t.teardown(() => ledger.close())
  const metrics = await openMetrics({
    others: undefined,
    ledger,
    now: Date.now,
    figures: () => new Map(),
    health: async () => [],
    revision: () => 'r1',
    isRefused: () => false,
    denyLists: () => [],
    rpcUrls: {},
    ledgerFile: undefined,
  })
  for (let sale = 0; sale < 20; sale += 1) {
    const record = makeRecord(`x402:${sale}`)
    const { network, payer } = record
    const receipt = { transaction: `0x${sale}`, network, payer, amount: '1000' }
    metrics.settle(record, nextRecord(record, { state: 'settled', receipt }))
  }
  const { text } = await metrics.read()
  t.match(text, /^ratecard_revenue_total\{.*\} 0\.02$/m, 'and not 0.02000000000000001')
})

t.test('answers 404 for metrics to requests without the token', async (t) => {
  const ask = (headers: Record<string, string>) => fetch(`${shop.url}/metrics`, { headers })
  const refused = await Promise.all([ask({}), ask({ authorization: 'Bearer wrong' })])
  t.strictSame(
    refused.map(({ status }) => status),
    [404, 404],
  )
  const told = await ask({ authorization: `Bearer ${TOKEN}` })
  t.equal(told.status, 200)
  t.match(await told.text(), 'ratecard_revenue_total')
})

t.test('limits a caller who requests samples without pause, and serves the others', async (t) => {
  const ask = (path: string, client: string) =>
    fetch(shop.url + path, { headers: { 'x-forwarded-for': `8.8.8.8, ${client}, 10.0.0.7` } })
  const statuses: number[] = []
  for (let n = 0; n < 70; n += 1) statuses.push((await ask('/sample/work', `2001:db8:1:2::${n + 1}`)).status)
  const limited = statuses.indexOf(429)
  t.ok(limited >= 60, `after ${limited} calls`)
  const refused = await ask('/sample/work', '2001:db8:1:2:ffff::1')
  t.equal(refused.status, 429)
  t.match(await refused.json(), { code: 'too_many_requests', charged: 'no', retryable: true })
  t.ok(Number(refused.headers.get('retry-after')) >= 1)
  t.equal((await ask('/sample/work', '2001:db8:1:3::1')).status, 200, 'another subscriber')
  t.equal((await ask('/sample/work', '203.0.113.9')).status, 200)
  const probes = await Promise.all(Array.from({ length: 200 }, () => ask('/paid/work', '2001:db8:1:2::1')))
  t.ok(
    probes.every(({ status }) => status === 402),
    'prices are shown to everybody',
  )
  await Promise.all(probes.map((probe) => probe.text()))
  t.equal((await ask('/llms.txt', '2001:db8:1:2::1')).status, 200)
})

t.test('answers the payment in flight when the process is told to stop, and charges it once', async (t) => {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const runs = shop.upstream.runs()
  shop.upstream.during(() => opened)
  const key = await shop.wallet()
  const buying = openBuyer(key, secrets).buy(`${shop.url}/paid/slow?n=5`)
  await until('the work has begun', () => shop.upstream.runs() > runs)
  // What it has written is complete when its streams are closed.
  const closed = once(shop.server.process, 'close')
  shop.server.process.kill('SIGTERM')
  await shop.server.said(/stopping/)
  await t.rejects(fetch(`${shop.url}/health`), 'nothing new is taken')
  open()
  t.match(await buying, { status: 200, transaction: /^0x/ })
  t.strictSame(await closed, [0, null])
  t.match(lineOf({ route: '/paid/slow', outcome: 'ok' }), { payment: /^pay_/ }, 'its line is written too')
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('finds a payment in flight again after a forced stop, and charges it once', async (t) => {
  shop.upstream.during(async () => undefined)
  const hasty = await shop.branch()
  const key = await shop.wallet()
  const payment = await sign(await challengeOf(`${hasty.url}/paid/slow`), key)
  secrets.addHeader(payment.header)
  const runs = shop.upstream.runs()
  shop.upstream.during(() => new Promise(() => undefined))
  const lost = send(`${hasty.url}/paid/slow?n=6`, payment.header)
  lost.catch(() => undefined)
  await until('the work has begun', () => shop.upstream.runs() > runs)
  const exited = once(hasty.process, 'exit')
  for (const signal of ['SIGTERM', 'SIGTERM'] as const) {
    hasty.process.kill(signal)
    await hasty.said(/stopping/)
  }
  t.strictSame(await exited, [null, 'SIGKILL'])
  await t.rejects(lost)
  shop.upstream.during(async () => undefined)
  const next = await shop.branch()
  const again = await send(`${next.url}/paid/slow?n=6`, payment.header)
  t.equal(again.status, 200)
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('keeps what was requested and paid with out of every log line', async (t) => {
  secrets.scan(shop.output())
  t.strictSame(secrets.leaked(), [])
  t.notMatch(shop.output(), /hunter2|secret-path|n=77|2001:db8|203\.0\.113/)
})
