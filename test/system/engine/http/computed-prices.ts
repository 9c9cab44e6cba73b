import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { x402Client } from '@x402/core/client'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { tempo } from 'mppx/client'
import { McpClient } from 'mppx/mcp/client'
import { privateKeyToAccount } from 'viem/accounts'
import t from 'tap'
import { challengeStatements } from '../../../../src/cli/doctor/service-statements.ts'
import { compareStatements } from '../../../../src/cli/doctor/route-statements.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/engine/base/json.ts'
import { payableEnv, startChains } from '../../guards/support/chains.ts'
import { READERS } from '../../../support/document-statements.ts'
import { at, items } from '../../../support/documents.ts'
import { callTool, rpc } from '../../../support/mcp.ts'
import {
  addressOf,
  challengeOf,
  type Hex,
  randomKey,
  readHeader,
  send,
  sign,
  stockFetch,
} from '../../../support/payment.ts'
import { randomBytes } from '../../../support/random.ts'
import { dial } from '../../../support/http.ts'
import { startServer, type RunningServer } from '../../../support/server.ts'
import { clientOf, stockPayer } from '../../../support/tempo.ts'

const FOLDER = fileURLToPath(new URL('../../../fixtures/prices', import.meta.url))
const STANDING = readFileSync(join(FOLDER, 'catalog.yaml'), 'utf8')
const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-'))
const catalog = join(dataDir, 'catalog.yaml')
writeFileSync(catalog, STANDING)

const chains = await startChains()
const secret = randomKey()
const ways = { base: chains.base.rpcUrl, tempo: chains.tempo.rpcUrl }
const open = async (): Promise<RunningServer> =>
  startServer({
    args: ['--handlers', join(FOLDER, 'handlers')],
    dataDir,
    env: { CATALOG: catalog, ...payableEnv(chains, ways, [await chains.signer()], secret) },
  })
const [server, branch] = [await open(), await open()]
t.teardown(async () => {
  await Promise.all([server.stop(), branch.stop()])
  await chains.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const SCAN = `${server.url}/paid/scan`
const TOOLS = `${server.url}/mcp/tools`
const check = (domains: number, depth = 'flat'): string =>
  `/paid/check?domains=${listOf(domains).join(',')}&depth=${depth}`
const listOf = (length: number): string[] => Array.from({ length }, (_, n) => `d${n}.example`)
const textOf = async (path: string): Promise<string> => (await fetch(server.url + path)).text()
const post = (size: number): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'image/png' },
  body: Buffer.alloc(size, 7),
})

/** Atomic units, by another way than the engine's: floats, of numbers that they hold exactly. */
const scanCosts = (size: number): number => 1_000 + 500 * Math.max(0, Math.ceil((size - 2_000) / 1_000))
const checkCosts = (domains: number, depth: string): number =>
  Math.min(50_000, Math.ceil(2_000 * domains + (depth === 'deep' ? 10_000.5 : 0)))

t.test('lets an unmodified x402 client pay by the size of a body, each call exactly', async (t) => {
  const key = await chains.base.wallet()
  let due = 0
  for (const size of [3, 2_000, 2_001, 70_000, 200_000]) {
    const response = await stockFetch(key)(SCAN, post(size))
    t.equal(response.status, 200, `${size} bytes`)
    t.match(await response.json(), { bytes: size })
    due += scanCosts(size)
    t.equal((await chains.base.charged(addressOf(key))).amount, String(due))
  }
})

t.test('lets an unmodified MPP client pay by the size of a body and by the items of a list', async (t) => {
  const key = await chains.tempo.wallet()
  const { fetch: pay } = stockPayer(chains.tempo.rpcUrl, privateKeyToAccount(key))
  let due = 0
  const calls: [string, RequestInit, number][] = [
    [SCAN, post(5_500), scanCosts(5_500)],
    [server.url + check(3), {}, checkCosts(3, 'flat')],
    [server.url + check(40, 'deep'), {}, 50_000],
  ]
  for (const [url, init, price] of calls) {
    const response = await (pay as typeof fetch)(url, init)
    t.equal(response.status, 200, url)
    due += price
    t.equal((await chains.tempo.charged(addressOf(key))).amount, String(due))
  }
})

t.test('lets an unmodified x402 client pay for each item of a list, rounded up once', async (t) => {
  const key = await chains.base.wallet()
  const response = await stockFetch(key)(server.url + check(7, 'deep'))
  t.equal(response.status, 200)
  t.equal((await chains.base.charged(addressOf(key))).amount, '24001')
})

/** Pays as x402's library signs what the result of an unpaid call offers; `sent`: other arguments than that call's. */
async function payTool(key: Hex, name: string, args: JsonObject, sent = args): Promise<JsonObject> {
  const { content } = await callTool(TOOLS, name, args)
  const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(key)))
  const header = Buffer.from(JSON.stringify(content)).toString('base64')
  const payment: unknown = await wallet.createPaymentPayload(decodePaymentRequiredHeader(header))
  const meta = { 'x402/payment': isJsonObject(payment) ? payment : {} }
  return (await callTool(TOOLS, name, sent, { meta })).content
}

t.test('charges a tool as its route, by the library of either protocol', async (t) => {
  const key = await chains.base.wallet()
  const body = Buffer.alloc(9_000, 7).toString('base64')
  t.match(await payTool(key, 'scan', { body }), { bytes: 9_000 })
  t.equal((await chains.base.charged(addressOf(key))).amount, String(scanCosts(9_000)))
  t.match(await payTool(key, 'check', { domains: listOf(5) }), { depth: 'flat' })
  t.equal((await chains.base.charged(addressOf(key))).amount, String(scanCosts(9_000) + 10_000))

  const account = privateKeyToAccount(await chains.tempo.wallet())
  const plain = {
    callTool: async (asked: { name: string; arguments: JsonObject; _meta?: JsonObject }) =>
      (await callTool(TOOLS, asked.name, asked.arguments, { meta: asked._meta ?? {} })).whole,
  }
  const getClient = (): ReturnType<typeof clientOf> => clientOf(chains.tempo.rpcUrl, account)
  const client = McpClient.wrap(plain, { methods: [tempo.charge({ account, getClient })] })
  const args = { domains: listOf(6), depth: 'deep' }
  t.match(await client.callTool({ name: 'check', arguments: args }), { structuredContent: { depth: 'deep' } })
  t.equal((await chains.tempo.charged(account.address)).amount, '22001')
})

t.test('takes a body by MCP that is as large as by HTTP, and refuses a larger one uncharged', async (t) => {
  const key = await chains.base.wallet()
  const bodyOf = (size: number): JsonObject => ({ body: Buffer.alloc(size, 7).toString('base64') })
  t.match(await payTool(key, 'keep', bodyOf(5_000_000)), { bytes: 5_000_000 })
  t.equal((await chains.base.charged(addressOf(key))).amount, '2000')
  t.match(await payTool(key, 'keep', bodyOf(10), bodyOf(5_000_001)), {
    charged: 'no',
    detail: [{ loc: ['arguments', 'body'], msg: /larger than the 5000000 bytes this tool takes/ }],
  })
  const { status, error } = await rpc(TOOLS, 'tools/call', { name: 'keep', arguments: bodyOf(6_000_000) })
  t.equal(status, 413)
  t.match(error, { message: /^the message is larger than the 6928812 bytes this server takes$/ })
  t.equal((await chains.base.charged(addressOf(key))).transfers, 1)
})

t.test('refuses a message with more values than memory is kept for, whatever they are', async (t) => {
  for (const value of ['{}', '[]', '1', '"a"', '{"a":1}']) {
    const text = `[${`${value},`.repeat(1_000_000)}0]`
    const response = await fetch(TOOLS, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: text.slice(0, 6_900_000),
    })
    t.equal(response.status, 413, value)
    t.match(await response.text(), /the message has more than 1,000,000 values/)
  }
})

t.test('serves small requests while bodies of others take up all memory for large ones', async (t) => {
  const message = Buffer.alloc(6_500_000, ' ')
  const head = `POST /mcp/tools HTTP/1.1\r\nHost: ${new URL(TOOLS).host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${message.length + 1}\r\n\r\n`
  const sockets: Socket[] = []
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  let refused = ''
  const begin = async (bytes: number): Promise<void> => {
    const socket = await dial(TOOLS)
    sockets.push(socket)
    socket.once('data', (answer: Buffer) => {
      refused ||= answer.toString()
    })
    socket.write(head)
    await new Promise((resolve) => socket.write(message.subarray(0, bytes), resolve))
  }
  const isFull = async (): Promise<boolean> => {
    const offer: Json = JSON.parse(await (await fetch(SCAN, post(190_000))).text())
    return at(offer, 'would_fail', 'code') === 'service_busy'
  }
  while (refused === '' && sockets.length < 60) await begin(message.length)
  const fill = async (): Promise<void> => {
    while (!(await isFull()) && sockets.length < 200) await begin(128_000)
  }
  await fill()
  t.match(refused, /^HTTP\/1\.1 503 /)
  t.match(refused, /\r\nRetry-After: 1\r\n/)
  t.match(refused, /"message":"[^"]+; nothing was charged"/)

  const key = await chains.base.wallet()
  t.match(await payTool(key, 'check', { domains: listOf(2) }), { depth: 'flat' }, 'a small call of a tool')
  t.equal((await stockFetch(key)(SCAN, post(3))).status, 200, 'a small body')
  const charged = (await chains.base.charged(addressOf(key))).amount
  t.equal(charged, String(4_000 + scanCosts(3)))
  // A body that was refused while it arrived has made room again.
  await fill()
  t.ok(await isFull(), 'a large body would have to wait')
  const offered = await fetch(`${server.url}/paid/keep`, post(3_000_000))
  t.equal(offered.status, 402)
  const { header } = await sign(readHeader(offered, 'payment-required') as never, key)
  const buy = async (): Promise<Response> => {
    const headers = { 'content-type': 'image/png', 'PAYMENT-SIGNATURE': header }
    return fetch(`${server.url}/paid/keep`, { ...post(3_000_000), headers })
  }
  const busy = await buy()
  t.equal(busy.status, 503)
  t.equal(busy.headers.get('retry-after'), '1')
  t.match(await busy.json(), { code: 'service_busy', charged: 'no', retryable: true })
  t.equal((await chains.base.charged(addressOf(key))).amount, charged)

  for (const socket of sockets) socket.destroy()
  let sold = await buy()
  while (sold.status === 503) sold = await buy()
  t.match(await sold.json(), { bytes: 3_000_000 }, 'the same payment buys when there is room again')
})

/** Messages are counted, and the model is a member of a body that one schema describes. */
const chat = (messages: number, model?: string | null): { model?: string | null; messages: Json[] } => ({
  ...(model === undefined ? {} : { model }),
  messages: Array.from({ length: messages }, (_, n) => ({ text: `message ${n}` })),
})
const chatCosts = (messages: number, model: string): number =>
  Math.min(50_000, (model === 'large' ? 10_000 : 1_000) + 500 * (messages - 1))
const CHAT = `${server.url}/paid/chat`
const postJson = (body: Json): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

t.test('lets stock clients pay by the members of a body that is declared as one schema', async (t) => {
  const [key, account] = [await chains.base.wallet(), privateKeyToAccount(await chains.tempo.wallet())]
  const { fetch: payByMpp } = stockPayer(chains.tempo.rpcUrl, account)
  let due = 0
  for (const [messages, model] of [[1], [1, 'large'], [3, null], [200, 'small']] as const) {
    for (const pay of [stockFetch(key), payByMpp as typeof fetch]) {
      const response = await pay(CHAT, postJson(chat(messages, model)))
      t.equal(response.status, 200)
      t.match(await response.json(), { model: model ?? null, messages })
    }
    due += chatCosts(messages, model ?? 'small')
    t.equal((await chains.base.charged(addressOf(key))).amount, String(due))
    t.equal((await chains.tempo.charged(account.address)).amount, String(due))
  }
  t.match(await payTool(key, 'chat', { body: chat(4, 'large') }), { model: 'large', messages: 4 })
  t.equal((await chains.base.charged(addressOf(key))).amount, String(due + chatCosts(4, 'large')))

  const { header } = await sign(
    readHeader(await fetch(CHAT, postJson(chat(2))), 'payment-required') as never,
    key,
  )
  const other = postJson(chat(2, 'large'))
  const headers = { 'content-type': 'application/json', 'PAYMENT-SIGNATURE': header }
  const refused = await fetch(CHAT, { ...other, headers })
  t.equal(refused.status, 402)
  t.match(await refused.json(), {
    charged: 'no',
    price: {
      amount: '0.010500',
      rule: '0.0005 per item of messages above 1 + model (0.001 if small, 0.01 if large), at most 0.05',
      parts: [
        { part: 'model', value: 'large' },
        { part: 'items_of messages', count: 2, units: 1 },
      ],
    },
  })
  t.equal((await chains.base.charged(addressOf(key))).amount, String(due + chatCosts(4, 'large')))
})

t.test('publishes schemas of bodies whose references hold', async (t) => {
  const ajv = new Ajv2020({ strict: false, validateSchema: false })
  ajv.addSchema(JSON.parse(await textOf('/openapi.json')), 'openapi')
  const content = 'openapi#/paths/~1paid~1chat/post/requestBody/content'
  const body = ajv.getSchema(`${content}/application~1json/schema`)
  const { result } = await rpc(TOOLS, 'tools/list', {})
  const tool = items(result?.['tools']).find((each) => at(each, 'name') === 'chat')
  const input = at(tool, 'inputSchema')
  const call = ajv.compile(isJsonObject(input) ? input : {})
  for (const [sent, isValid] of [
    [chat(1, 'large'), true],
    [chat(1, 'medium'), false],
    [{ messages: [{ text: 1 }] }, false],
  ] as const) {
    t.equal(body?.(sent), isValid)
    t.equal(call({ body: sent }), isValid)
  }
})

t.test('answers 402 with the right amount and the reason to a payment for other arguments', async (t) => {
  const key = await chains.base.wallet()
  const { header } = await sign(await challengeOf(server.url + check(2)), key)
  const response = await send(server.url + check(3), header)
  t.equal(response.status, 402)
  t.match(readHeader(response, 'payment-required'), { accepts: [{ amount: '6000' }] })
  t.match(await response.json(), {
    code: 'no_matching_requirements',
    detail: 'the payment was made for 4000; with these arguments the call costs 6000',
    charged: 'no',
    price: {
      amount: '0.006000',
      currency: 'USD',
      rule: '0.002 per item of domains + depth (0.0100005 if deep), at most 0.05',
      parts: [{ part: 'items_of domains', count: 3, units: 3, amount: '0.006' }],
    },
  })
  t.equal((await chains.base.charged(addressOf(key))).amount, '0')

  const offered = await fetch(SCAN, post(2_000))
  const large = await sign(readHeader(offered, 'payment-required') as never, key)
  const refused = await fetch(SCAN, {
    ...post(190_000),
    headers: { 'content-type': 'image/png', 'PAYMENT-SIGNATURE': large.header },
  })
  t.equal(refused.status, 402)
  t.match(await refused.json(), { charged: 'no', price: { amount: '0.095000' } })
  t.equal((await chains.base.charged(addressOf(key))).amount, '0')

  const account = privateKeyToAccount(await chains.tempo.wallet())
  const payer = stockPayer(chains.tempo.rpcUrl, account)
  const authorization = await payer.createCredential(await fetch(server.url + check(2)))
  const other = await fetch(server.url + check(3), { headers: { authorization } })
  t.equal(other.status, 402)
  t.match(await other.json(), {
    code: 'invalid_challenge',
    detail: /made for 4000.*costs 6000/,
    charged: 'no',
  })
  t.equal((await chains.tempo.charged(account.address)).amount, '0')
})

t.test('names the lowest price for invalid arguments, and that the call would fail', async (t) => {
  const response = await fetch(`${server.url}/paid/check?depth=steep`)
  t.equal(response.status, 402)
  t.match(readHeader(response, 'payment-required'), { accepts: [{ amount: '2000' }] })
  t.match(await response.json(), {
    would_fail: { code: 'parameters_invalid' },
    price: { amount: '0.002000' },
  })
})

t.test('says the same of the price in all documents and in the 402s of 200 calls', async (t) => {
  const openapi: unknown = JSON.parse(await textOf('/openapi.json'))
  const rules = ['/paid/scan', '/paid/check'].map((path, n) =>
    ruleOf(openapi, path, n === 0 ? 'post' : 'get'),
  )
  const [scan, checked] = rules
  if (scan === undefined || checked === undefined) throw new Error('the rules are published')
  for (const path of [
    '/',
    '/llms.txt',
    '/docs/paid_check',
    '/docs.md',
    '/.well-known/agent-card.json',
    '/x402-resources',
  ])
    t.ok(
      (await textOf(path)).includes('0.002 per item of domains + depth (0.0100005 if deep), at most 0.05'),
      path,
    )
  let wrong = 0
  for (let n = 0; n < 200; n += 1) {
    const [first = 0, second = 0] = randomBytes(2)
    const isScan = n % 2 === 0
    const [size, domains, depth] = [1 + first * 300, 1 + (first % 40), second % 2 === 0 ? 'flat' : 'deep']
    const due = isScan ? scanCosts(size) : checkCosts(domains, depth)
    const response = await (isScan ? fetch(SCAN, post(size)) : fetch(server.url + check(domains, depth)))
    const header = readHeader(response, 'payment-required')
    const request = /\brequest="([\w-]+)"/.exec(response.headers.get('www-authenticate') ?? '')?.[1] ?? ''
    const tool = isScan
      ? await callTool(TOOLS, 'scan', { body: Buffer.alloc(size, 7).toString('base64') })
      : await callTool(TOOLS, 'check', { domains: listOf(domains), depth })
    const body: unknown = await response.json()
    const price = isJsonObject(body) && isJsonObject(body['price']) ? body['price'] : {}
    const told = [
      amountIn(header),
      JSON.parse(Buffer.from(request, 'base64url').toString())['amount'],
      amountIn(tool.content),
      String(Number(price['amount']) * 1e6),
      String(computed(isScan ? scan.rule : checked.rule, isScan ? size : domains, depth)),
    ].map((each) => Math.round(Number(each)))
    const { min, max } = isScan ? scan : checked
    const inside = due >= Math.round(Number(min) * 1e6) && due <= Math.round(Number(max) * 1e6)
    if (!inside || told.some((each) => each !== due)) wrong += 1
  }
  t.equal(wrong, 0)
  // As doctor compares them.
  const documents = await Promise.all(
    [...READERS].map(async ([name, read]) => {
      const path = DOCUMENTS[name]
      return path === undefined ? undefined : read(name, await textOf(path))
    }),
  )
  const asked = await fetch(`${server.url}/paid/check`)
  const body = await asked.text()
  const challenge = {
    key: '/paid/check',
    headers: asked.headers,
    body,
  }
  const statements = [...documents.flatMap((each) => each ?? []), ...challengeStatements([challenge])]
  t.same(
    compareStatements(statements).filter(({ path }) => path === '/paid/check'),
    [],
  )
})

const DOCUMENTS: Readonly<Record<string, string>> = {
  openapi: '/openapi.json',
  index: '/',
  categories: '/categories.json',
  x402: '/.well-known/x402',
  'x402-resources': '/x402-resources',
  'agent-card': '/.well-known/agent-card.json',
  llms: '/llms.txt',
}

function amountIn({ accepts }: JsonObject): Json | undefined {
  const [first] = Array.isArray(accepts) ? accepts : []
  return isJsonObject(first) ? first['amount'] : undefined
}

interface Published {
  readonly min: Json | undefined
  readonly max: Json | undefined
  readonly rule: JsonObject
}

function ruleOf(openapi: unknown, path: string, method: string): Published | undefined {
  const paths = isJsonObject(openapi) ? openapi['paths'] : undefined
  const item = isJsonObject(paths) ? paths[path] : undefined
  const operation = isJsonObject(item) ? item[method] : undefined
  if (!isJsonObject(operation)) return undefined
  const [info, rule] = [operation['x-payment-info'], operation['x-price-rule']]
  const price = isJsonObject(info) ? info['price'] : undefined
  if (!isJsonObject(price) || !isJsonObject(rule)) return undefined
  t.equal(price['mode'], 'dynamic')
  return { min: price['min'], max: price['max'], rule }
}

/** What an agent computes from the published rule, in micro-dollars. */
function computed(rule: JsonObject, count: number, value: string): number {
  const list = (key: string): JsonObject[] => {
    const found = rule[key]
    return Array.isArray(found) ? found.filter(isJsonObject) : []
  }
  const rates = list('per').reduce((sum, { unit, price, included }) => {
    const units = Math.max(0, Math.ceil((count - Number(included)) / Number(unit)))
    return sum + units * Number(price)
  }, 0)
  const choices = list('by').reduce((sum, { prices }) => {
    return sum + Number((isJsonObject(prices) ? prices[value] : undefined) ?? 0)
  }, 0)
  const micros = Math.ceil(Number(((Number(rule['base']) + rates + choices) * 1e6).toFixed(3)))
  return Math.min(micros, Number(rule['max'] ?? Infinity) * 1e6)
}

t.test('honours a computed price that changes between signature and request, in every process', async (t) => {
  const key = await chains.base.wallet()
  const [here, there, wrong] = [
    await sign(await challengeOf(server.url + check(4)), key),
    await sign(await challengeOf(server.url + check(5)), key),
    await sign(await challengeOf(server.url + check(6)), key),
  ]
  writeFileSync(
    catalog,
    STANDING.replace('items_of: domains, price: 0.002', 'items_of: domains, price: 0.003'),
  )
  for (const each of [server, branch]) {
    each.process.kill('SIGHUP')
    await each.said(/revision \S+ → \S+/)
  }
  t.equal((await challengeOf(server.url + check(4))).accepts[0]?.amount, '12000')
  t.equal((await send(server.url + check(4), here.header)).status, 200)
  t.equal((await send(branch.url + check(5), there.header)).status, 200)
  t.equal((await chains.base.charged(addressOf(key))).amount, '18000')
  const refused = await send(branch.url + check(7), wrong.header)
  t.equal(refused.status, 402, 'the former price of other arguments is no offer')
  t.match(await refused.json(), { price: { amount: '0.021000' } })
  t.equal((await chains.base.charged(addressOf(key))).amount, '18000')
})
