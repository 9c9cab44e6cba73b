import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { onchainClient } from '../../../support/base-chain.ts'
import { writeShop } from '../../../support/catalogs.ts'
import { listening } from '../../../support/http.ts'
import { callTool } from '../../../support/mcp.ts'
import { type Challenge, challengeOf, readHeader, sign } from '../../../support/payment.ts'
import { readSandboxFile, runProgram, startServer } from '../../../support/server.ts'
import { until } from '../../../support/until.ts'

const OURS = 'key-of-the-operator'
/** Customers of the upstream by their keys. */
const CUSTOMERS: Readonly<Record<string, string>> = {
  [OURS]: 'operator',
  'key-of-ann': 'ann',
  'key-of-bob': 'bob',
  'key-of-a-guest': 'guest',
  'key-of-a-debtor': 'debtor',
}
const UNKNOWN = 'key-that-nobody-has'

interface Asked {
  readonly path: string
  readonly authorization: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** An API with customers of its own, and what it was asked. */
const asked: Asked[] = []
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { headers, url: path = '' } = request
  const { authorization } = headers
  const body = await text(request)
  asked.push({ path, authorization, headers, body })
  const size = body.length
  const sent = path.startsWith('/keyed')
    ? String(headers['x-key'] ?? headers.cookie?.replace('session=', ''))
    : (authorization ?? '').replace('Bearer ', '')
  const who = CUSTOMERS[sent]
  const say = (status: number, value: object): void => {
    response.writeHead(status, { 'content-type': 'application/json', 'x-plan': String(who) })
    response.end(JSON.stringify(value))
  }
  if (who === undefined) return say(401, { error: `unknown key ${sent}` })
  if (who === 'guest') return say(403, { error: 'not in your plan' })
  if (who === 'debtor') return say(402, { error: `your plan is used up, ${sent}` })
  if (path.startsWith('/missing')) return say(404, { error: 'nothing here' })
  if (!path.startsWith('/events'))
    return say(200, path === '/file' ? { who, size } : { who, run: asked.length, body })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (let count = 1; count <= 20; count += 1) {
    response.write(`data: ${who} ${count}\n\n`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}
const upstream = await listening(createServer((request, response) => void answer(request, response)))
t.teardown(() => upstream.close())

const shop = writeShop(
  t,
  `  /fresh: { summary: Tells who asks, parameters: { n: { type: integer, default: 0 } }, response: { headers: [X-Plan] }, tool: data.fresh }
  /kept: { summary: Tells who asks, cache: 10m }
  /missing: { summary: Finds nothing }
  /events: { summary: Streams, response: { stream: true, media_type: text/event-stream } }
  /payers: { summary: Sells to payers only, access: { upstream: false } }
  POST /echo: { summary: Repeats a text, body: { properties: { said: { type: string, example: hello } } } }
  POST /file: { summary: Takes a file, body: { media_type: application/octet-stream, max_size: 3 MB } }
  /keyed: { summary: Takes a header, credential: { header: { X-Key: SHOP_KEY } } }
  /keyed/cookie: { summary: Takes a cookie, credential: { header: { Cookie: SHOP_COOKIE } } }
`,
  `catalog: 1
service: { name: Small shop, version: '1.0.0', description: Sells things }
payments: { currency: USD, x402: { networks: [base] } }
access: { upstream: true, api_keys: { file: ./keys.txt } }
defaults: { price: 0.001, handler: proxy, upstream: '${upstream.url}', credential: SHOP_KEY }
mcp_servers: { data: { title: Data } }
documents: { openapi: /openapi.json, health: /health }
`,
)
const apiKey = (await runProgram(['keys', 'new', 'acme', '--catalog', shop.catalog], {})).stdout.trim()
const server = await startServer({
  args: ['--sandbox', '--catalog', shop.catalog],
  env: {
    SHOP_KEY: OURS,
    SHOP_COOKIE: `session=${OURS}`,
    TRUST_PROXY: '1',
    METRICS_TOKEN: 'token-of-sixteen-letters',
  },
})
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const chain = onchainClient(evm)
/** Another purchase for each: the same one would be delivered again. */
let purchases = 0
function freshPath(): string {
  purchases += 1
  return `/fresh?n=${purchases}`
}

type Headers = Readonly<Record<string, string>>

function bearer(key: string): Headers {
  return { Authorization: `Bearer ${key}` }
}

interface Sent {
  readonly method?: string
  readonly headers?: Headers
  readonly body?: string
}

async function ask(path: string, headers: Headers = {}, init: Sent = {}) {
  const response = await fetch(server.url + path, { ...init, headers: { ...init.headers, ...headers } })
  const body = await response.text()
  return { status: response.status, headers: response.headers, text: body, json: () => JSON.parse(body) }
}

/** What the upstream was asked meanwhile. */
async function during(work: () => Promise<unknown>): Promise<readonly Asked[]> {
  const before = asked.length
  await work()
  return asked.slice(before)
}

const uses = async (): Promise<number> => (await chain.uses()).length

t.test('passes the credential of a customer of the upstream on instead of ours, unpaid', async (t) => {
  for (const [key, who] of [
    ['key-of-ann', 'ann'],
    ['key-of-bob', 'bob'],
  ] as const) {
    const calls = await during(async () => {
      const { status, headers, json } = await ask('/fresh', bearer(key))
      t.equal(status, 200)
      t.match(json(), { who })
      t.equal(headers.get('x-plan'), who)
      t.equal(headers.get('cache-control'), 'private, no-store')
      t.equal(headers.get('payment-response'), null)
    })
    t.strictSame(
      calls.map(({ authorization }) => authorization),
      [`Bearer ${key}`],
    )
  }
  t.equal(await uses(), 0)
})

t.test('asks no upstream for a request without a credential', async (t) => {
  const calls = await during(async () => {
    t.equal((await ask('/fresh')).status, 402)
    t.equal((await ask('/fresh', { Authorization: '' })).status, 402)
    t.equal(
      (await ask('/keyed', bearer('key-of-ann'))).status,
      402,
      'a header that this upstream does not read',
    )
    t.equal((await ask('/fresh', bearer('key-of-ann'), { method: 'HEAD' })).status, 402)
    t.equal((await ask('/payers', bearer('key-of-ann'))).status, 402, 'a route for payers only')
  })
  t.strictSame(calls, [])
})

t.test('never passes a payment on as a credential', async (t) => {
  const calls = await during(async () => {
    for (const value of ['Payment e30', 'payment  e30', 'Bearer key-of-ann, Payment e30'])
      t.equal((await ask('/fresh', { Authorization: value })).status, 402, value)
  })
  t.strictSame(calls, [])
})

t.test('offers the price to a caller whose credential the upstream refuses', async (t) => {
  const { status, headers, json } = await ask('/fresh', bearer(UNKNOWN))
  t.equal(status, 402)
  t.match(json(), { code: 'payment_required', charged: 'no', detail: /does not accept the credential/ })
  t.match(Buffer.from(headers.get('payment-required') ?? '', 'base64').toString(), '"accepts":[{')
  t.notMatch(JSON.stringify([json(), ...headers]), UNKNOWN)
})

t.test('sells to a refused caller who pays, with our credential, once', async (t) => {
  const before = await uses()
  const path = freshPath()
  const { header } = await sign(await challengeOf(server.url + path), evm.payerKey)
  const paying = { ...bearer(UNKNOWN), 'PAYMENT-SIGNATURE': header }
  const calls = await during(async () => {
    const { status, json } = await ask(path, paying)
    t.equal(status, 200)
    t.match(json(), { who: 'operator' })
  })
  t.strictSame(
    calls.map(({ authorization }) => authorization),
    [`Bearer ${UNKNOWN}`, `Bearer ${OURS}`],
  )
  t.equal((await ask(path, paying)).status, 200, 'the same payment again')
  t.equal(await uses(), before + 1)
})

t.test('leaves the payment of a known customer unused, valid or not', async (t) => {
  const before = await uses()
  const path = freshPath()
  const { header } = await sign(await challengeOf(server.url + path), evm.payerKey)
  const { json } = await ask(path, { ...bearer('key-of-ann'), 'PAYMENT-SIGNATURE': header })
  t.match(json(), { who: 'ann' })
  t.equal((await ask(path, { ...bearer('key-of-ann'), 'PAYMENT-SIGNATURE': 'e30=' })).status, 200)
  t.equal(await uses(), before)
  const paid = await ask(path, { 'PAYMENT-SIGNATURE': header })
  t.match(paid.json(), { who: 'operator' })
  t.equal(await uses(), before + 1)
})

t.test('passes a 403 on as it is and sells nothing in its place', async (t) => {
  const before = await uses()
  const path = freshPath()
  const { header } = await sign(await challengeOf(server.url + path), evm.payerKey)
  for (const headers of [
    bearer('key-of-a-guest'),
    { ...bearer('key-of-a-guest'), 'PAYMENT-SIGNATURE': header },
  ]) {
    const answer = await ask(path, headers)
    t.equal(answer.status, 403)
    t.equal(answer.text, '{"error":"not in your plan"}')
    t.equal(answer.headers.get('content-type'), 'application/json')
    t.equal(answer.headers.get('x-plan'), 'guest')
    t.equal(answer.headers.get('payment-required'), null)
    t.equal(answer.headers.get('cache-control'), 'private, no-store')
  }
  t.equal(await uses(), before)
})

t.test('passes on what the upstream says about other requests of a customer', async (t) => {
  const missing = await ask('/missing', bearer('key-of-ann'))
  t.equal(missing.status, 404)
  t.match(missing.json(), { code: 'not_found', upstream: { status: 404, body: { error: 'nothing here' } } })
  const debtor = await ask('/fresh', bearer('key-of-a-debtor'))
  t.equal(debtor.status, 400)
  t.match(debtor.json(), { code: 'upstream_rejected', upstream: { status: 402 } })
  t.notMatch(debtor.text, 'key-of-a-debtor')
})

t.test('keeps the answers of callers apart from each other and from those it has sold', async (t) => {
  const keys = ['key-of-ann', 'key-of-bob']
  const callers = Array.from({ length: 20 }, (_, index) => keys[index % 2] ?? '')
  const callAll = async (path: string): Promise<void> => {
    const calls = await during(async () => {
      const answers = await Promise.all(callers.map((key) => ask(path, bearer(key))))
      t.strictSame(
        answers.map(({ json }) => json().who),
        callers.map((key) => CUSTOMERS[key]),
      )
    })
    t.equal(calls.length, callers.length, `${path}: each call reaches the upstream`)
  }
  await callAll('/fresh')
  await callAll('/kept')
  const { header } = await sign(await challengeOf(`${server.url}/kept`), evm.payerKey)
  t.match((await ask('/kept', { 'PAYMENT-SIGNATURE': header })).json(), { who: 'operator' })
  const ofKey = await during(() => ask('/kept', bearer(apiKey)))
  t.equal(ofKey.length, 0, 'customers with a key of ours share the cache with those who pay')
  await callAll('/kept')
})

t.test('streams to each caller what the upstream streams to them', async (t) => {
  const keys = ['key-of-ann', 'key-of-bob', 'key-of-ann', UNKNOWN, 'key-of-a-guest']
  const answers = await Promise.all(keys.map((key) => ask('/events', bearer(key))))
  t.strictSame(
    answers.map(({ status }) => status),
    [200, 200, 200, 402, 403],
  )
  for (const [index, who] of ['ann', 'bob', 'ann'].entries()) {
    const expected = Array.from({ length: 20 }, (_, count) => `data: ${who} ${count + 1}\n\n`).join('')
    t.equal(answers[index]?.text, expected)
  }
})

t.test('sends a body to the upstream for the caller, and again for the payment', async (t) => {
  const post = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"said":"hello"}' }
  t.match((await ask('/echo', bearer('key-of-ann'), post)).json(), { who: 'ann', body: '{"said":"hello"}' })
  const refused = await fetch(`${server.url}/echo`, {
    ...post,
    headers: { ...post.headers, ...bearer(UNKNOWN) },
  })
  t.equal(refused.status, 402)
  t.notMatch(await refused.clone().text(), 'would_fail')
  const { header } = await sign(readHeader(refused, 'payment-required') as unknown as Challenge, evm.payerKey)
  const calls = await during(async () => {
    const paid = await ask('/echo', { ...bearer(UNKNOWN), 'PAYMENT-SIGNATURE': header }, post)
    t.match(paid.json(), { who: 'operator', body: '{"said":"hello"}' })
  })
  t.strictSame(
    calls.map(({ body }) => body),
    ['{"said":"hello"}', '{"said":"hello"}'],
  )
  const wrong = await ask('/echo', bearer('key-of-ann'), { ...post, body: '{"said":1}' })
  t.equal(wrong.status, 422, 'a customer learns what is wrong with a request')
})

t.test(
  'sends a body that is too large for an offer to the upstream, and again for the payment',
  async (t) => {
    const body = 'x'.repeat(2_000_000)
    const post = { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body }
    t.match((await ask('/file', bearer('key-of-bob'), post)).json(), { who: 'bob', size: body.length })
    const refused = await fetch(`${server.url}/file`, {
      ...post,
      headers: { ...post.headers, ...bearer(UNKNOWN) },
    })
    t.equal(refused.status, 402)
    const { header } = await sign(
      readHeader(refused, 'payment-required') as unknown as Challenge,
      evm.payerKey,
    )
    const paid = await ask('/file', { ...bearer(UNKNOWN), 'PAYMENT-SIGNATURE': header }, post)
    t.match(paid.json(), { who: 'operator', size: body.length })
  },
)

t.test('takes the header that carries our credential, and no cookie of a page of another site', async (t) => {
  t.match((await ask('/keyed', { 'X-Key': 'key-of-bob' })).json(), { who: 'bob' })
  t.equal((await ask('/keyed', { 'X-Key': UNKNOWN })).status, 402)
  const cookie = { Cookie: 'session=key-of-bob' }
  t.match((await ask('/keyed/cookie', cookie)).json(), { who: 'bob' })
  const calls = await during(async () => {
    for (const site of ['cross-site', 'same-site'])
      t.equal((await ask('/keyed/cookie', { ...cookie, 'Sec-Fetch-Site': site })).status, 402, site)
  })
  t.strictSame(calls, [])
})

t.test('looks at its own keys first, and asks the upstream with our credential for them', async (t) => {
  const calls = await during(async () => {
    t.match((await ask('/fresh', bearer(apiKey))).json(), { who: 'operator' })
    t.match((await ask('/fresh', { 'X-API-Key': apiKey, ...bearer(UNKNOWN) })).json(), { who: 'operator' })
  })
  t.strictSame(
    calls.map(({ authorization }) => authorization),
    [`Bearer ${OURS}`, `Bearer ${OURS}`],
  )
})

t.test(
  'serves a tool to callers with a key or a credential of the upstream, and sells it to others',
  async (t) => {
    const tool = `${server.url}/mcp/data`
    const before = await uses()
    const call = (headers: Headers, meta = {}) => callTool(tool, 'fresh', { n: 1000 }, { headers, meta })
    t.match((await call(bearer('key-of-ann'))).content, { who: 'ann' })
    t.match((await call(bearer(apiKey))).content, { who: 'operator' })
    t.match((await call({ 'X-API-Key': apiKey })).content, { who: 'operator' })
    t.match((await call(bearer('key-of-a-guest'))).content, {
      code: 'upstream_forbidden',
      charged: 'no',
      upstream: { status: 403, body: { error: 'not in your plan' } },
    })
    const offered = await call(bearer(UNKNOWN))
    t.match(offered.content, { code: 'payment_required', accepts: [{}] })
    const meta = {
      'x402/payment': (await sign(offered.content as unknown as Challenge, evm.payerKey)).payload,
    }
    t.match((await call(bearer('key-of-ann'), meta)).content, { who: 'ann' })
    t.equal(await uses(), before)
    t.match((await call(bearer(UNKNOWN), meta)).content, { who: 'operator' })
    t.equal(await uses(), before + 1)
  },
)

t.test('lets an address try some unknown credentials, and known ones as often as they like', async (t) => {
  const from = (address: string, key: string): Headers => ({ ...bearer(key), 'X-Forwarded-For': address })
  const tries = await Promise.all(
    Array.from({ length: 80 }, (_, index) => ask('/fresh', from('203.0.113.7', `guess-${index}`))),
  )
  const statuses = tries.map(({ status }) => status)
  const limited = tries.find(({ status }) => status === 429)
  t.ok(statuses.filter((status) => status === 402).length >= 60)
  t.match(limited?.json(), { code: 'too_many_requests', charged: 'no', detail: /unknown|does not know/ })
  t.ok(Number(limited?.headers.get('retry-after')) > 0)
  t.equal((await ask('/fresh', from('203.0.113.7', 'key-of-ann'))).status, 200, 'known from before')
  t.equal((await ask('/fresh', { 'X-Forwarded-For': '203.0.113.7' })).status, 402, 'for sale')
  const many = await Promise.all(
    Array.from({ length: 100 }, () => ask('/fresh', from('203.0.113.8', 'key-of-bob'))),
  )
  t.ok(many.every(({ status }) => status === 200))
})

const ledger = ['--json', '--sandbox', '--data-dir', server.dataDir]

interface Row {
  readonly name: string
  readonly keyed: number
  readonly settled: number
}

t.test('counts the calls of customers apart, and keeps no credential anywhere', async (t) => {
  const rows = async (): Promise<readonly Row[]> =>
    JSON.parse((await runProgram(['stats', ...ledger], {})).stdout || '[]')
  await until('the counts are stored', async () => {
    const keyed = (await rows()).find(({ name }) => name === 'sold keyed')?.keyed
    return keyed === 1
  })
  const counted = new Map((await rows()).map((row) => [row.name, row]))
  t.match(counted.get('sold kept'), { keyed: 41, settled: 1 })
  t.equal(counted.get('sold payers')?.keyed, 0)
  const payments = (await runProgram(['payments', 'list', ...ledger], {})).stdout
  const settled = [...counted.values()].reduce((sum, row) => sum + row.settled, 0)
  t.equal(JSON.parse(payments).length, settled, 'the ledger has payments only')
  t.equal(settled, await uses())
  const metrics = await ask('/metrics', bearer('token-of-sixteen-letters'))
  const kept = [server.output(), JSON.stringify(server.log()), payments, metrics.text].join('\n')
  for (const secret of [...Object.keys(CUSTOMERS), UNKNOWN, apiKey, 'guess-1'])
    t.notMatch(kept, secret, secret)
})
