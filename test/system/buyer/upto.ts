import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { EventEmitter, once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isJsonObject, type JsonObject } from '../../../src/engine/base/json.ts'
import { openBridge, recordIn } from '../../support/bridge.ts'
import { listening } from '../../support/http.ts'
import { addressOf, type Hex } from '../../support/payment.ts'
import { runLine, type Ran } from '../../support/run-command.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

/** Emits `asked` for the prompt "wait", whose answer waits for `go`. */
const gate = new EventEmitter()

/** A model that reports as many tokens as the prompt asks for; the prompt "fail" fails. */
const model = await listening(
  createServer((request, response) => {
    void json(request).then(async (body) => {
      const { prompt, tokens } = body as { readonly prompt: string; readonly tokens: number }
      if (prompt === 'wait') {
        const go = once(gate, 'go')
        gate.emit('asked')
        await go
      }
      response.statusCode = prompt === 'fail' ? 500 : 200
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ text: prompt, usage: { tokens } }))
    })
  }),
)
const catalog = join(t.testdir(), 'catalog.yaml')
writeFileSync(
  catalog,
  `catalog: 1
service: { name: Words of a model, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base], schemes: [upto, exact], timeout: 60s } }
mcp_servers: { tools: { title: Words as tools } }
routes:
  POST /paid/chat:
    tool: tools.chat
    handler: proxy
    upstream: ${model.url}/chat
    price: { metered: [{ value_of: /usage/tokens, price: 0.00001 }], ceiling: 0.05 }
    summary: An answer of a model
    body: &body
      properties:
        prompt: { type: string, required: true, maxLength: 200, example: hello }
        tokens: { type: integer, default: 100 }
    response: { schema: { type: object, additionalProperties: true } }
    example: { text: hello, usage: { tokens: 100 } }
  POST /paid/word:
    handler: proxy
    upstream: ${model.url}/word
    price: 0.01
    summary: A word of a model
    body: *body
    response: { schema: { type: object, additionalProperties: true } }
    example: { text: hello, usage: { tokens: 100 } }
`,
)
const shop = await openShop(async () => ({ CATALOG: catalog }), [])
t.teardown(async () => {
  await shop.close()
  await model.close()
})
const tools = `${shop.url}/mcp/tools`

interface Paying {
  readonly key: Hex
  readonly rpcUrl?: string
}

function pay({ key, rpcUrl = shop.node.url }: Paying, path: string, ...more: string[]): Promise<Ran> {
  const variables = { PAYER_PRIVATE_KEY: key, RPC_URL_8453: rpcUrl, DATA_DIR: t.testdirName }
  return runLine(['pay', shop.url + path, ...more], { variables })
}

const asking = (prompt: string, tokens: number): string => JSON.stringify({ prompt, tokens })

function bill({ out }: Ran): JsonObject {
  const value: unknown = JSON.parse(out)
  if (!isJsonObject(value)) throw new Error(out)
  return value
}

/** What a wallet has paid, in atomic units. */
async function paid(key: Hex): Promise<bigint> {
  return 100_000_000n - (await shop.chain.balance(addressOf(key)))
}

t.test('pays for a metered route by itself, and shows what was authorized, used and charged', async (t) => {
  const key = await shop.wallet()
  const ran = await pay({ key }, '/paid/chat', '-d', asking('a', 123), '--max', '0.05', '--json')
  t.equal(ran.code, 0, ran.out)
  t.match(bill(ran), {
    status: 200,
    charged: 'yes',
    protocol: 'x402',
    network: 'eip155:8453',
    amount: '0.001230',
    authorized: '0.050000',
    transaction: /^0x[0-9a-f]{64}$/,
    usage: [{ part: 'value_of /usage/tokens', count: 123, amount: '0.00123' }],
    body: { text: 'a' },
  })
  t.equal(await paid(key), 1_230n)
  const told = await pay({ key }, '/paid/chat', '-d', asking('b', 200), '--max', '0.05')
  t.equal(told.code, 0, told.err)
  t.match(
    told.err,
    /at most 0\.05 USD in USDC on Base [^]*signed by 0x[^]*settled in 0x[^]*0\.002 of 0\.05 USD charged: value_of \/usage\/tokens 200 = 0\.002\n[^]*charged: yes/,
  )
  t.equal(await paid(key), 3_230n, 'what is left of the first approval is replaced')
})

t.test('signs no approval where Permit2 is approved', async (t) => {
  const key = await shop.wallet()
  const approved = 1_000_000n
  await shop.onchain.approvePermit2(addressOf(key), approved)
  for (const tokens of [1, 2]) {
    const ran = await pay({ key }, '/paid/chat', '-d', asking('c', tokens), '--max', '0.05', '--json')
    t.match(bill(ran), { status: 200, charged: 'yes', amount: `0.0000${tokens}0` })
  }
  t.equal(await paid(key), 30n)
  t.equal(await shop.onchain.permit2Allowance(addressOf(key)), approved - 30n)
})

t.test('charges nothing for an answer that has used nothing, and for work that fails', async (t) => {
  const key = await shop.wallet()
  const free = await pay({ key }, '/paid/chat', '-d', asking('d', 0), '--max', '0.05', '--json')
  t.equal(free.code, 0, free.out)
  t.match(bill(free), {
    status: 200,
    charged: 'no',
    amount: '0.000000',
    transaction: null,
    body: { text: 'd' },
  })
  const told = await pay({ key }, '/paid/chat', '-d', asking('e', 0), '--max', '0.05')
  t.match(told.err, /it has used nothing, and costs nothing[^]*200, charged: no/)
  const failed = await pay({ key }, '/paid/chat', '-d', asking('fail', 5), '--max', '0.05', '--json')
  t.equal(failed.code, 4)
  t.match(bill(failed), { status: 502, charged: 'no', amount: '0.000000', authorized: '0.050000' })
  t.equal(await paid(key), 0n)
})

t.test('refuses a ceiling above --max, and signs nothing without a node', async (t) => {
  const key = await shop.wallet()
  const over = await pay({ key }, '/paid/chat', '-d', asking('f', 1), '--max', '0.049')
  t.match(over, { code: 3, err: /what it may cost is over --max/ })
  const gone = await listening(createServer())
  await gone.close()
  const silent = await pay({ key, rpcUrl: gone.url }, '/paid/chat', '-d', asking('f', 1), '--max', '0.05')
  t.match(silent, { code: 4, err: /a node of Base must say [^\n]*none answers: set RPC_URL_8453/ })
  t.equal(await paid(key), 0n)
})

/** A shop that repeats a 402, and answers a payment with a receipt of this amount. */
async function openOther(t: Test, required: JsonObject, amount: string): Promise<string> {
  const encode = (value: JsonObject): string => Buffer.from(JSON.stringify(value)).toString('base64')
  const receipt = { success: true, transaction: `0x${'1'.repeat(64)}`, network: 'eip155:8453', amount }
  const other = await listening(
    createServer((request, response) =>
      request.headers['payment-signature'] === undefined
        ? response.writeHead(402, { 'PAYMENT-REQUIRED': encode(required) }).end('{}')
        : response.writeHead(200, { 'PAYMENT-RESPONSE': encode(receipt) }).end('{}'),
    ),
  )
  t.teardown(() => other.close())
  return other.url
}

t.test(
  'says what to approve where a shop sends no approvals, and counts no more than the ceiling',
  async (t) => {
    const key = await shop.wallet()
    const headers = { 'content-type': 'application/json' }
    const asked = await fetch(`${shop.url}/paid/chat`, { method: 'POST', headers, body: asking('p', 1) })
    const required: unknown = JSON.parse(
      Buffer.from(asked.headers.get('payment-required') ?? '', 'base64').toString(),
    )
    if (!isJsonObject(required)) throw new Error('no challenge')
    const other = await openOther(t, { ...required, extensions: {} }, '900000')
    const variables = { PAYER_PRIVATE_KEY: key, RPC_URL_8453: shop.node.url, DATA_DIR: t.testdirName }
    const buy = (): Promise<Ran> => runLine(['pay', `${other}/x`, '--max', '1', '--json'], { variables })
    t.match(await buy(), { code: 4 })
    const told = await runLine(['pay', `${other}/x`, '--max', '1'], { variables })
    t.match(
      told.err,
      /Permit2 may not move USDC of 0x\w{40} on Base: approve 0x000000000022D473030F116dDEE9F6B43aC78BA3 once/,
    )
    await shop.onchain.approvePermit2(addressOf(key), 1_000_000n)
    t.match(bill(await buy()), { charged: 'yes', amount: '0.050000', authorized: '0.050000' })
  },
)

t.test('pays a fixed price by exact, and by upto when --scheme says so', async (t) => {
  const key = await shop.wallet()
  const buy = (prompt: string, ...more: string[]): Promise<Ran> =>
    pay({ key }, '/paid/word', '-d', asking(prompt, 1), '--max', '0.01', '--json', ...more)
  const usual = bill(await buy('g'))
  t.match(usual, { charged: 'yes', amount: '0.010000' })
  t.notOk('authorized' in usual)
  t.match(bill(await buy('h', '--scheme', 'upto')), {
    charged: 'yes',
    amount: '0.010000',
    authorized: '0.010000',
  })
  t.equal(await paid(key), 20_000n)
  const exact = await pay({ key }, '/paid/chat', '-d', asking('i', 1), '--max', '1', '--scheme', 'exact')
  t.match(exact, { code: 4, err: /no offer of this 402 can be signed here/ })
  t.match(await buy('j', '--scheme', 'best'), {
    code: 64,
    err: /--scheme takes exact, upto or batch-settlement/,
  })
  const mixed = await buy('j', '--scheme', 'upto', '--protocol', 'mpp')
  t.match(mixed, { code: 64, err: /--scheme is for x402 alone/ })
})

/** Atomic units, as the record of spending has them. */
function spentIn(stateDir: string): unknown {
  return JSON.parse(recordIn(stateDir)).spent
}

const LIMITS = ['--max-per-call', '0.05', '--max', '0.06']

t.test('a bridge counts the ceiling against its budget, and then what was charged', async (t) => {
  const [key, stateDir] = [await shop.wallet(), t.testdir()]
  const env = { RPC_URL_8453: shop.node.url }
  const bridge = await openBridge(t, { key, stateDir, url: tools, env, flags: LIMITS })
  const first = await bridge.call('chat', { prompt: 'k', tokens: 400 })
  t.notOk(first.isError, first.text)
  t.match(
    first.text,
    /Paid 0\.004 of at most 0\.05 USD on Base, transaction 0x[0-9a-f]{64}\. 0\.056 of 0\.06 USD are left\.$/,
  )
  t.match(first.meta['ratecard/receipt'], { amount: '0.004', authorized: '0.05', charged: 'yes' })
  t.match(await bridge.call('chat', { prompt: 'l', tokens: 0 }), {
    isError: false,
    text: /Nothing was charged/,
  })
  await until('the first call counts with what it has cost', () => spentIn(stateDir) === '4000')
  const asked = once(gate, 'asked')
  const waiting = bridge.call('chat', { prompt: 'wait', tokens: 300 })
  await asked
  const [open] = Object.values<JsonObject>(JSON.parse(recordIn(stateDir)).open)
  t.match(open, { amount: '50000', amountIs: 'ceiling' }, 'while the work runs')
  gate.emit('go')
  t.match((await waiting).text, /Paid 0\.003 of at most 0\.05 USD/)
  t.equal((await bridge.call('chat', { prompt: 'm', tokens: 400 })).isError, false)
  await until('the third call counts with what it has cost', () => spentIn(stateDir) === '11000')
  const over = await bridge.call('chat', { prompt: 'n', tokens: 1 })
  t.match(over, {
    isError: true,
    text: /^chat may cost 0\.05 USD, and 0\.011 of the budget of 0\.06 USD are spent .*Nothing was paid\./,
  })
  t.equal(await paid(key), 11_000n)
  t.equal(await bridge.close(), 0)
})

t.test('a bridge pays for calls at the same time, each with an approval of its own', async (t) => {
  const [key, stateDir] = [await shop.wallet(), t.testdir()]
  const env = { RPC_URL_8453: shop.node.url }
  const flags = ['--max-per-call', '0.05', '--max', '1']
  const bridge = await openBridge(t, { key, stateDir, url: tools, env, flags })
  const calls = [1, 2, 3, 4].map((tokens) => bridge.call('chat', { prompt: 'o', tokens }))
  for (const { isError, text } of await Promise.all(calls)) t.notOk(isError, text)
  t.equal(await paid(key), 100n)
  t.equal(await bridge.close(), 0)
})

t.test('a bridge pays once for a call whose process was killed while the work ran', async (t) => {
  const [key, stateDir] = [await shop.wallet(), t.testdir()]
  const env = { RPC_URL_8453: shop.node.url }
  const first = await openBridge(t, { key, stateDir, url: tools, env, flags: LIMITS })
  const asked = once(gate, 'asked')
  first.call('chat', { prompt: 'wait', tokens: 500 }).catch(() => undefined)
  await asked
  await first.kill()
  const second = await openBridge(t, { key, stateDir, url: tools, env, flags: LIMITS })
  // The shop may still work for the first process, or work anew for the second one.
  const release = (): boolean => gate.emit('go')
  gate.on('asked', () => setImmediate(release))
  const again = second.call('chat', { prompt: 'wait', tokens: 500 })
  release()
  const { isError, text } = await again
  t.notOk(isError, text)
  t.match(text, /Paid 0\.005 of at most 0\.05 USD/)
  t.equal(await paid(key), 5_000n)
  t.equal(await second.close(), 0)
  t.same(JSON.parse(recordIn(stateDir)).open, {})
  t.equal(spentIn(stateDir), '5000')
})
