import { EventEmitter, once } from 'node:events'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isJsonObject, type JsonObject } from '../../../src/engine/base/json.ts'
import { openBridge, recordIn } from '../../support/bridge.ts'
import { contractReader, handmade, openChannelShop, type HandmadeChannel } from '../../support/channels.ts'
import { listening } from '../../support/http.ts'
import { addressOf, type Hex } from '../../support/payment.ts'
import { runLine, type Ran } from '../../support/run-command.ts'
import { until } from '../../support/until.ts'

t.setTimeout(300_000)

const shop = await openChannelShop()
t.teardown(() => shop.close())
const contract = contractReader(shop.chain.rpcUrl)
const tools = `${shop.url}/mcp/tools`
const env = { RPC_URL_8453: shop.node.url }

interface Paying {
  readonly key: Hex
  readonly stateDir: string
}

function run({ key, stateDir }: Paying, ...argv: string[]): Promise<Ran> {
  const variables = { PAYER_PRIVATE_KEY: key, DATA_DIR: stateDir, XDG_STATE_HOME: stateDir, ...env }
  return runLine(argv, { variables })
}

function pay(paying: Paying, path: string, ...more: string[]): Promise<Ran> {
  const target = path.startsWith('http') ? path : shop.url + path
  return run(paying, 'pay', target, '--scheme', 'batch-settlement', '--max', '0.1', '--json', ...more)
}

function bill({ out }: Ran): JsonObject {
  const value: unknown = JSON.parse(out)
  if (!isJsonObject(value)) throw new Error(out)
  return value
}

/** What the chain has of the wallet’s channel. */
async function channelOf(key: Hex): Promise<HandmadeChannel & { readonly balance: bigint }> {
  const channel = await handmade(shop, key)
  return { ...channel, balance: (await contract.channel(channel.id)).balance }
}

/** Everything that is kept of channels below a folder. */
function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.includes('channels') && name.endsWith('.json'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
}

async function newWallet(t: Test): Promise<Paying> {
  return { key: await shop.wallet(), stateDir: t.testdir() }
}

t.test('deposits what --deposit allows, and then pays by vouchers', async (t) => {
  const buyer = await newWallet(t)
  const none = await run(buyer, 'pay', `${shop.url}/paid/work`, '--scheme', 'batch-settlement', '--max', '1')
  t.match(none, { code: 4, err: /the channel needs a deposit: allow it with --deposit 0\.10, or more/ })
  const small = await run(
    buyer,
    'pay',
    `${shop.url}/paid/work`,
    ...'--scheme batch-settlement --max 1 --deposit 0.09'.split(' '),
  )
  t.match(small, { code: 4, err: /a deposit of 0\.10 USD at least: raise --deposit/ })
  const first = await pay(buyer, '/paid/work?n=1', '--deposit', '0.2')
  t.match(bill(first), {
    status: 200,
    charged: 'yes',
    amount: '0.001000',
    transaction: /^0x/,
    body: { n: 1 },
  })
  const second = await pay(buyer, '/paid/work?n=2')
  t.match(bill(second), {
    status: 200,
    charged: 'yes',
    amount: '0.001000',
    transaction: null,
    body: { n: 2 },
  })
  const metered = await pay(buyer, '/paid/metered?n=200')
  t.match(bill(metered), { status: 200, charged: 'yes', amount: '0.020000', authorized: '0.090000' })
  const free = await pay(buyer, '/paid/metered?n=0')
  t.match(bill(free), { status: 200, charged: 'no', amount: '0.000000' })
  t.match(bill(await pay(buyer, '/paid/work?n=3')), { status: 200, charged: 'yes' })
  t.equal((await channelOf(buyer.key)).balance, 200_000n)
  const files = filesIn(buyer.stateDir)
  t.match(JSON.parse(files[0] ?? ''), { charged: '23000', balance: '200000', deposited: '200000' })
  t.notOk(files.join('').includes(buyer.key.slice(2)), 'no key is kept')
})

t.test('continues a channel whose record was lost, without another deposit', async (t) => {
  const buyer = await newWallet(t)
  for (const n of [1, 2]) t.equal((await pay(buyer, `/paid/work?n=${n}`, '--deposit', '0.1')).code, 0)
  rmSync(join(buyer.stateDir, 'ratecard'), { recursive: true })
  t.match(bill(await pay(buyer, '/paid/work?n=3', '--deposit', '0.1')), { status: 200, transaction: null })
  t.equal((await channelOf(buyer.key)).balance, 100_000n)
})

t.test('pays for calls of several processes one after the other', async (t) => {
  const buyer = await newWallet(t)
  t.equal((await pay(buyer, '/paid/work?n=1', '--deposit', '0.1')).code, 0)
  const bridges = await Promise.all(
    [1, 2].map(() =>
      openBridge(t, {
        ...buyer,
        stateDir: join(buyer.stateDir, 'ratecard'),
        url: tools,
        env,
        flags: ['--max-per-call', '0.1', '--max', '1'],
      }),
    ),
  )
  const calls = bridges.flatMap((bridge, place) =>
    [2, 3, 4].map((n) => bridge.call('work', { n: n + 10 * place })),
  )
  for (const { isError, text } of await Promise.all(calls)) t.notOk(isError, text)
  t.match(JSON.parse(filesIn(buyer.stateDir)[0] ?? ''), { charged: '7000', balance: '100000' })
  t.equal((await channelOf(buyer.key)).balance, 100_000n)
  for (const bridge of bridges) t.equal(await bridge.close(), 0)
})

t.test(
  'a bridge uses a channel where its budget allows the deposit, and pays by exact otherwise',
  async (t) => {
    const buyer = await newWallet(t)
    const open = (max: string) =>
      openBridge(t, { ...buyer, url: tools, env, flags: ['--max-per-call', '0.1', '--max', max] })
    const small = await open('0.05')
    t.match(await small.call('work', { n: 1 }), {
      isError: false,
      text: /Paid 0\.001 USD on Base, transaction 0x/,
    })
    t.equal(await small.close(), 0)
    t.equal((await channelOf(buyer.key)).balance, 0n)
    const large = await open('0.15')
    t.match(await large.call('work', { n: 2 }), { isError: false, text: /Paid 0\.001 of at most 0\.001 USD/ })
    const metered = await large.call('metered', { n: 100 })
    t.match(metered, {
      isError: false,
      text: /Paid 0\.01 of at most 0\.09 USD on Base\. 0\.138 of 0\.15 USD are left\.$/,
    })
    await until(
      'the calls count with what they have cost',
      () => JSON.parse(recordIn(buyer.stateDir)).spent === '12000',
    )
    // The channel holds too little for the ceiling, another deposit would exceed the budget, and so would scheme upto.
    const over = await large.call('metered', { n: 101 })
    t.match(over, {
      isError: true,
      text: /0\.012 of the budget of 0\.15 USD are spent since [-\d]+, and 0\.089 USD lie in a channel\. Nothing was paid/,
    })
    t.equal((await channelOf(buyer.key)).balance, 100_000n)
    t.equal(await large.close(), 0)
  },
)

t.test('a bridge that was killed during a call is charged for it once', async (t) => {
  const buyer = await newWallet(t)
  const open = () =>
    openBridge(t, { ...buyer, url: tools, env, flags: ['--max-per-call', '0.1', '--max', '1'] })
  const first = await open()
  t.equal((await first.call('work', { n: 1 })).isError, false)
  const gate = new EventEmitter()
  const begun = once(gate, 'begun')
  shop.upstream.during(async () => {
    const killed = once(gate, 'killed')
    gate.emit('begun')
    await killed
  })
  first.call('work', { n: 2 }).catch(() => undefined)
  await begun
  await first.kill()
  gate.emit('killed')
  shop.upstream.during(async () => {})
  const second = await open()
  t.match(await second.call('work', { n: 2 }), { isError: false })
  t.match(await second.call('work', { n: 3 }), { isError: false })
  await until('the record is closed', () => JSON.parse(recordIn(buyer.stateDir)).spent === '3000')
  t.match(JSON.parse(filesIn(buyer.stateDir)[0] ?? ''), { charged: '3000' })
  t.equal(await second.close(), 0)
})

/** A shop that lies about its channels; `lie`: what it adds to its offer, and to its receipts. */
async function openLiar(
  t: Test,
  lie: { readonly correction?: JsonObject; readonly receipt?: JsonObject },
): Promise<{ readonly url: string; readonly ceilings: number[]; readonly deposits: number[] }> {
  const asked = await fetch(`${shop.url}/paid/work`)
  const required = JSON.parse(Buffer.from(asked.headers.get('payment-required') ?? '', 'base64').toString())
  const [ceilings, deposits]: [number[], number[]] = [[], []]
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64')
  const server = await listening(
    createServer((request, response) => {
      const sent = request.headers['payment-signature']
      if (typeof sent !== 'string') {
        response.writeHead(402, { 'PAYMENT-REQUIRED': encode(required) }).end('{}')
        return
      }
      const { payload } = JSON.parse(Buffer.from(sent, 'base64').toString())
      ceilings.push(Number(payload.voucher.maxClaimableAmount))
      if (payload.deposit !== undefined) deposits.push(Number(payload.deposit.amount))
      const { channelId } = payload.voucher
      if (lie.correction !== undefined) {
        const [offer] = required.accepts
        const extra = { ...offer.extra, channelState: { channelId, ...lie.correction } }
        const error = 'invalid_batch_settlement_evm_cumulative_amount_mismatch'
        const corrected = { ...required, error, accepts: [{ ...offer, extra }] }
        response.writeHead(402, { 'PAYMENT-REQUIRED': encode(corrected) }).end('{"charged":"no"}')
        return
      }
      const extra = { chargedAmount: '1000', channelState: { channelId, ...lie.receipt } }
      const receipt = { success: true, transaction: '', network: 'eip155:8453', amount: '', extra }
      response.writeHead(200, { 'PAYMENT-RESPONSE': encode(receipt) }).end('{}')
    }),
  )
  t.teardown(() => server.close())
  return { url: `${server.url}/x`, ceilings, deposits }
}

t.test('signs no more for a shop that says more was charged', async (t) => {
  const buyer = await newWallet(t)
  const liar = await openLiar(t, { correction: { chargedCumulativeAmount: '90000', balance: '100000' } })
  t.equal((await pay(buyer, liar.url, '--deposit', '0.1')).code, 4)
  t.strictSame([liar.ceilings, liar.deposits], [[1000], [100_000]])
  const other = await openLiar(t, { receipt: { chargedCumulativeAmount: '90000' } })
  const another = await newWallet(t)
  for (let n = 0; n < 3; n += 1) t.equal((await pay(another, other.url, '--deposit', '0.1')).code, 0)
  t.ok(Math.max(...other.ceilings) <= 3000, `${other.ceilings.join()}`)
})

t.test('signs one deposit for a shop that says it has got none', async (t) => {
  const buyer = await newWallet(t)
  const liar = await openLiar(t, { correction: { chargedCumulativeAmount: '0', balance: '0' } })
  for (let n = 0; n < 3; n += 1) t.equal((await pay(buyer, liar.url, '--deposit', '0.1')).code, 4)
  const [file = ''] = filesIn(buyer.stateDir)
  t.match(JSON.parse(file), { deposited: '100000', signed: '1000' })
})

t.test('gets back what is left of a channel, and leaves what is not worth its gas', async (t) => {
  const buyer = await newWallet(t)
  t.equal((await pay(buyer, '/paid/work?n=1', '--deposit', '0.1')).code, 0)
  const before = await shop.chain.balance(addressOf(buyer.key))
  const closed = await run(buyer, 'close', `${shop.url}/paid/work`)
  t.match(closed, { code: 0, out: /^0\.099 USD came back in 0x[0-9a-f]{64}$/ })
  t.equal((await shop.chain.balance(addressOf(buyer.key))) - before, 99_000n)
  const again = await run(buyer, 'close', `${shop.url}/paid/work`)
  t.match(again, {
    code: 4,
    out: /^0\.00 USD are left in the channel: a refund costs the shop gas, and is not asked for below 0\.01 USD\. .*initiateWithdraw.* 15 minutes later$/,
  })
  t.match(bill(await pay(buyer, '/paid/work?n=2', '--deposit', '0.1')), { status: 200, transaction: /^0x/ })
  rmSync(join(buyer.stateDir, 'ratecard'), { recursive: true })
  t.match(await run(buyer, 'close', `${shop.url}/paid/work`), { code: 0, out: /^0\.099 USD came back/ })
})
