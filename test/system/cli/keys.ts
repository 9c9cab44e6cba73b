import t from 'tap'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { onchainClient } from '../../support/base-chain.ts'
import { writeShop } from '../../support/catalogs.ts'
import { challengeOf, send, sign } from '../../support/payment.ts'
import { readSandboxFile, runProgram, startServer } from '../../support/server.ts'
import { until } from '../../support/until.ts'

const shop = writeShop(
  t,
  `  /hello: { price: 0.001, handler: greet, summary: Greets, parameters: { name: { type: string, example: ann } } }
  /more: { price: 0.001, handler: greet, summary: Greets, parameters: { name: { type: string, example: ann } }, access: { api_keys: false } }
`,
  `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
access: { api_keys: { file: ./keys.txt, header: X-Shop-Key } }
documents: { openapi: /openapi.json, health: /health }
`,
)
const FILE = join(shop.directory, 'keys.txt')
const keys = (...words: string[]): ReturnType<typeof runProgram> =>
  runProgram(['keys', ...words, '--catalog', shop.catalog], {})

const first = await keys('new', 'acme')
const KEY = first.stdout.trim()
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog, '--handlers', shop.handlers],
  env: { METRICS_TOKEN: 'token-of-sixteen-letters' },
})
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const chain = onchainClient(evm)
const HELLO = `${server.url}/hello?name=ann`
const ask = (url: string, headers: Record<string, string>): Promise<Response> => fetch(url, { headers })
const statusOf = async (headers: Record<string, string>, url = HELLO): Promise<number> =>
  (await ask(url, headers)).status

t.test('makes a key of 256 random bits, shows it once, and keeps its digest only', async (t) => {
  t.equal(first.code, 0)
  t.match(KEY, /^rk_[A-Za-z0-9_-]{43}$/)
  t.match(first.stderr, /not shown again/)
  const text = readFileSync(FILE, 'utf8')
  t.notMatch(text, KEY)
  t.match(text, /^[0-9a-f]{64} acme$/m)
  t.match(await keys('new', 'no name'), { code: 1, stderr: /is no name/ })
  t.equal(readFileSync(FILE, 'utf8'), text)
  t.match(JSON.parse((await keys('list', '--json')).stdout), [{ name: 'acme' }])
  const made: { readonly key: string } = JSON.parse((await keys('new', 'gamma', '--json')).stdout)
  t.match(made, { name: 'gamma', key: /^rk_/, digest: /^[0-9a-f]{64}$/, file: FILE })
  t.notMatch(readFileSync(FILE, 'utf8'), made.key)
  t.strictSame(JSON.parse((await keys('revoke', 'gamma', '--json')).stdout), {
    name: 'gamma',
    revoked: 1,
    file: FILE,
  })
  t.equal(readFileSync(FILE, 'utf8'), text)
})

t.test('serves a customer with a key without a payment, in either header', async (t) => {
  for (const headers of [{ 'X-Shop-Key': KEY }, { Authorization: `Bearer ${KEY}` }]) {
    const answer = await ask(HELLO, headers)
    t.equal(answer.status, 200)
    t.match(await answer.json(), { greeting: 'Hello ann' })
    t.equal(answer.headers.get('cache-control'), 'private, no-store')
    t.equal(answer.headers.get('payment-response'), null)
  }
  t.equal(await statusOf({ 'X-Shop-Key': KEY }, `${server.url}/hello?nam=ann`), 422)
  t.equal(
    await statusOf({ 'X-Shop-Key': KEY }, `${server.url}/more?name=ann`),
    402,
    'a route for payers only',
  )
  t.strictSame(await chain.uses(), [])
})

t.test('asks everybody else to pay', async (t) => {
  for (const headers of [
    {},
    { 'X-Shop-Key': '' },
    { 'X-Shop-Key': `${KEY}x` },
    { 'X-Shop-Key': KEY.slice(0, -1) },
    { 'X-API-Key': KEY },
    { Authorization: KEY },
    { Authorization: `Basic ${Buffer.from(KEY).toString('base64')}` },
  ])
    t.equal(await statusOf(headers), 402, JSON.stringify(headers).replace(KEY, 'KEY'))
  t.equal((await fetch(HELLO, { method: 'HEAD', headers: { 'X-Shop-Key': KEY } })).status, 402)
})

t.test('sells to a caller with an unknown key, and uses no payment of a customer', async (t) => {
  const { header } = await sign(await challengeOf(HELLO), evm.payerKey)
  const headers = { 'PAYMENT-SIGNATURE': header }
  t.equal(await statusOf({ ...headers, 'X-Shop-Key': KEY }), 200)
  t.strictSame(await chain.uses(), [])
  t.equal(await statusOf({ ...headers, 'X-Shop-Key': 'unknown' }), 200)
  t.equal((await chain.uses()).length, 1)
  t.equal((await send(HELLO, header)).status, 200, 'the same payment gets its answer again')
  t.equal((await chain.uses()).length, 1)
})

t.test('takes new keys and forgets revoked ones while it serves', async (t) => {
  const second = (await keys('new', 'beta')).stdout.trim()
  await until('the new key works', async () => (await statusOf({ 'X-Shop-Key': second })) === 200)
  t.equal(await statusOf({ 'X-Shop-Key': KEY }), 200)
  t.match(await keys('revoke', 'acme'), { code: 0, stdout: /^1 key of acme removed/ })
  await until('the old key is refused', async () => (await statusOf({ 'X-Shop-Key': KEY })) === 402)
  t.equal(await statusOf({ 'X-Shop-Key': second }), 200)
  t.match(await keys('revoke', 'acme'), { code: 1, stderr: /has no key of acme/ })

  appendFileSync(FILE, 'no digest\n')
  await server.said(/keys\.txt:\d+: a line is the SHA-256 digest/)
  t.equal(await statusOf({ 'X-Shop-Key': second }), 200, 'the last list stays in force')
})

t.test('names customers in its log and counts their calls, and shows no key', async (t) => {
  const isLogged = (customer: string, route: string): boolean =>
    server.log().some((line) => line['customer'] === customer && line['route'] === route)
  await until('the log has the calls of both', () => isLogged('acme', '/hello') && isLogged('beta', '/hello'))
  const metrics = await fetch(`${server.url}/metrics`, {
    headers: { Authorization: 'Bearer token-of-sixteen-letters' },
  })
  t.notMatch(server.output() + JSON.stringify(server.log()) + (await metrics.text()), KEY)
  const openapi: unknown = await (await fetch(`${server.url}/openapi.json`)).json()
  t.match(openapi, {
    components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'X-Shop-Key' } } },
    paths: { '/hello': { get: { security: [{ apiKey: [] }, {}] } }, '/more': { get: { security: [] } } },
  })
})
