import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { isJsonObject, type JsonObject } from '../../../../src/engine/base/json.ts'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import type { State } from '../../../../src/engine/ledger/payment-record.ts'
import { openBuyer, readBought, type Bought } from '../../../support/buyer.ts'
import { openBreakingProxy } from '../../../support/breaking-proxy.ts'
import { dial } from '../../../support/http.ts'
import {
  addressOf,
  challengeOf,
  encode,
  send,
  sign,
  type Hex,
  type SignedPayment,
} from '../../../support/payment.ts'
import { Secrets } from '../../../support/secrets.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const shop = await openShop()
t.teardown(() => shop.close())
const branch = await shop.branch()
const secrets = new Secrets()
secrets.add('an RPC endpoint', shop.node.url)
secrets.add('the signer’s key', shop.signerKey.slice(2))

/** The same request at one process and at the other. */
const at = [shop.url, branch.url] as const
let last = 0
/** A request nobody has sent before. */
function query(route = '/paid/work'): string {
  last += 1
  return `${route}?n=${last}`
}

async function pay(path: string, key: Hex): Promise<SignedPayment> {
  const payment = await sign(await challengeOf(`${shop.url}${path}`), key)
  secrets.addHeader(payment.header)
  return payment
}

function asObject(value: unknown): JsonObject {
  if (!isJsonObject(value)) throw new Error('no object')
  return value as JsonObject
}

t.afterEach(async () => {
  shop.upstream.during(async () => {})
  await shop.onchain.setMining('automatic')
})

t.test(
  'answers fifty copies of one payment over two processes with one run, one charge and one receipt',
  async (t) => {
    const key = await shop.wallet()
    const path = query()
    const payment = await pay(path, key)
    const runs = shop.upstream.runs()
    shop.upstream.during(() => delay(100))
    const bought = await Promise.all(
      Array.from({ length: 50 }, async (_, place) =>
        readBought(await send(`${at[place % 2]}${path}`, payment.header)),
      ),
    )
    const [use] = (await shop.onchain.uses()).filter(({ payer }) => payer === addressOf(key))
    const first: Bought = { status: 200, run: runs + 1, transaction: use?.transaction }
    t.strictSame(bought, Array(50).fill(first))
    t.equal(shop.upstream.runs(), runs + 1)
    t.equal(await shop.onchain.charges(addressOf(key)), 1)
  },
)

t.test('answers and charges twenty buyers over two processes with one signer', async (t) => {
  const payments: { path: string; payment: SignedPayment }[] = []
  while (payments.length < 20) {
    const path = query()
    payments.push({ path, payment: await pay(path, await shop.wallet()) })
  }
  const before = (await shop.onchain.uses()).length
  const bought = await Promise.all(
    payments.map(async ({ path, payment }, place) =>
      readBought(await send(`${at[place % 2]}${path}`, payment.header)),
    ),
  )
  t.strictSame(
    bought.map(({ status }) => status),
    Array(20).fill(200),
  )
  const made = (await shop.onchain.uses()).slice(before)
  t.equal(made.length, 20)
  t.strictSame(
    new Set(bought.map(({ transaction }) => transaction)),
    new Set(made.map(({ transaction }) => transaction)),
    'every receipt is true',
  )
})

t.test('redelivers an answer that was cut off to a stock client at its next try, uncharged', async (t) => {
  for (const [way, where] of [
    [0, 'before'],
    [1, 'within'],
  ] as const) {
    const cutter = await openBreakingProxy(at[way])
    t.teardown(() => cutter.close())
    const key = await shop.wallet()
    const buyer = openBuyer(key, secrets)
    const path = query()
    const runs = shop.upstream.runs()
    cutter.cut(where)
    await t.rejects(buyer.buy(`${cutter.url}${path}`), `cut off ${where} it`)
    t.equal(cutter.cuts(), 1)
    const [use] = (await shop.onchain.uses()).filter(({ payer }) => payer === buyer.address)
    t.ok(use, 'it was charged')
    const again = await buyer.buy(`${cutter.url}${path}`)
    t.strictSame(again, { status: 200, run: runs + 1, transaction: use?.transaction }, 'the first answer')
    t.equal(buyer.nonces().length, 2, 'for a payment that was signed anew')
    t.equal(await shop.onchain.charges(buyer.address), 1, 'and not charged')
    t.equal(shop.upstream.runs(), runs + 1)
  }
})

/** Buys on a connection of its own; resolves to it when the answer is complete. */
async function buyOver(path: string, { header }: SignedPayment): Promise<Socket> {
  const socket = await dial(shop.url)
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nPAYMENT-SIGNATURE: ${header}\r\n\r\n`)
  await until('the answer is complete', () => /^HTTP\/1.1 200 [^]*\}$/.test(answer))
  return socket
}

/** Resolves when the answer to the only payment of a key counts as delivered. */
async function untilDelivered(key: Hex): Promise<void> {
  const ledger = await openLmdbLedger(join(shop.server.dataDir, 'ledger'))
  const stateOf = async (): Promise<State | undefined> => {
    for await (const { payer, state } of ledger.records())
      if (payer.toLowerCase() === addressOf(key).toLowerCase()) return state
    return undefined
  }
  await until('the answer counts as delivered', async () => (await stateOf()) === 'sent')
  await ledger.close()
}

t.test('redelivers an answer whose connection was reset after its last byte, uncharged', async (t) => {
  const [key, later] = [await shop.wallet(), await shop.wallet()]
  const [path, next] = [query(), query()]
  const runs = shop.upstream.runs()
  ;(await buyOver(path, await pay(path, key))).resetAndDestroy()
  ;(await buyOver(next, await pay(next, later))).end()
  await untilDelivered(later)
  t.match(await openBuyer(key, secrets).buy(`${shop.url}${path}`), { status: 200, run: runs + 1 })
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test(
  'redelivers an answer whose connection was reset while its process was blocked, uncharged',
  async (t) => {
    const [key, blocker, later] = [await shop.wallet(), await shop.wallet(), await shop.wallet()]
    const [path, blocking, next] = [query(), query('/paid/block'), query()]
    const [payment, block] = [await pay(path, key), await pay(blocking, blocker)]
    const runs = shop.upstream.runs()
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    shop.upstream.during(() => released)
    const blocked = send(`${shop.url}${blocking}`, block.header)
    await until('the handler runs', () => shop.upstream.runs() === runs + 1)
    shop.upstream.during(async () => {})
    const socket = await buyOver(path, payment)
    release()
    await shop.server.said(/^blocked by /m)
    socket.resetAndDestroy()
    t.equal((await blocked).status, 200)
    ;(await buyOver(next, await pay(next, later))).end()
    await untilDelivered(later)
    t.match(await openBuyer(key, secrets).buy(`${shop.url}${path}`), { status: 200, run: runs + 2 })
    t.equal(await shop.onchain.charges(addressOf(key)), 1)
  },
)

t.test('charges a buyer once who hangs up at any moment and signs again at another process', async (t) => {
  const moments = {
    'during the work': async (leave: () => void) => {
      shop.upstream.during(async () => {
        leave()
        await delay(100)
      })
    },
    'during the settlement': async (leave: () => void) => {
      await shop.onchain.setMining('manual')
      const sent = shop.node.calls().length
      const minedLater = async (): Promise<void> => {
        await until('it is sent', () => shop.node.calls().slice(sent).includes('eth_sendRawTransaction'))
        leave()
        await delay(100)
        await shop.onchain.setMining('automatic')
        await shop.onchain.mine()
      }
      return { mined: minedLater() }
    },
  }
  for (const [name, begin] of Object.entries(moments)) {
    for (const url of at) {
      const key = await shop.wallet()
      const path = query()
      const leaving = new AbortController()
      const begun = await begin(() => leaving.abort())
      const buyer = openBuyer(key, secrets)
      await t.rejects(buyer.buy(`${shop.url}${path}`, { signal: leaving.signal }), name)
      shop.upstream.during(async () => {})
      t.match(await buyer.buy(`${url}${path}`), { status: 200 }, name)
      // Else it would mine the transaction of the next buyer, who then has no time to leave.
      await begun?.mined
      t.equal(await shop.onchain.charges(buyer.address), 1, name)
    }
  }
})

t.test('refuses a sold answer to anyone who rebuilds a payment from the chain, however quick', async (t) => {
  const key = await shop.wallet()
  const path = query()
  const challenge = await challengeOf(`${shop.url}${path}`)
  const identifier = {
    ...asObject(challenge.extensions['payment-identifier']),
    info: { id: 'order-0000000001' },
  }
  const extensions = { ...challenge.extensions, 'payment-identifier': identifier }
  const payment = await sign(challenge, key, { extensions })
  secrets.addHeader(payment.header)
  // What the calldata contains, and the payment identifier, which is not secret.
  const { extensions: _, ...seen } = payment.payload
  const rebuilt = [seen, { ...seen, extensions: { 'payment-identifier': identifier } }]
  const observe = (): Promise<Response[]> =>
    Promise.all(at.flatMap((url) => rebuilt.map((each) => send(`${url}${path}`, encode(each)))))

  await shop.onchain.setMining('manual')
  const calls = shop.node.calls().length
  const bought = send(`${shop.url}${path}`, payment.header)
  await until('it is in the pool', () => shop.node.calls().slice(calls).includes('eth_sendRawTransaction'))
  const watching = observe()
  await delay(300)
  await shop.onchain.setMining('automatic')
  await shop.onchain.mine()
  t.match(await readBought(await bought), { status: 200 })
  const once = await observe()
  await delay(2_500)
  for (const response of [...(await watching), ...once, ...(await observe())]) {
    const body = await secrets.scanResponse(response)
    t.equal(response.status, 409)
    t.match(body, /"payment_reused"/)
  }
  t.match(
    await readBought(await send(`${branch.url}${path}`, payment.header)),
    { status: 200 },
    'the buyer does',
  )
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('redelivers a lost answer to a buyer who signs again behind a proxy, uncharged', async (t) => {
  // The proxy has a connection of its own to the service, which all buyers share, and takes every answer in full.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const behind = await shop.branch({ TRUST_PROXY: '1' })
  const ask = (path: string, header: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      request(`${behind.url}${path}`, { agent, headers: { 'payment-signature': header } }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode))
      })
        .once('error', reject)
        .end()
    })
  const [key, other] = [await shop.wallet(), await shop.wallet()]
  const [path, another] = [query(), query()]
  t.equal(await ask(path, (await pay(path, key)).header), 200)
  t.equal(await ask(another, (await pay(another, other)).header), 200, 'on the same connection')
  await delay(2_500)
  t.equal(await ask(path, (await pay(path, key)).header), 200)
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('keeps the answer of a client that echoes no token from an observer of the pool', async (t) => {
  const key = await shop.wallet()
  const path = query()
  const payment = await sign(await challengeOf(`${shop.url}${path}`), key, { extensions: null })
  secrets.addHeader(payment.header)
  await shop.onchain.setMining('manual')
  const calls = shop.node.calls().length
  const bought = send(`${shop.url}${path}`, payment.header)
  await until('it is in the pool', () => shop.node.calls().slice(calls).includes('eth_sendRawTransaction'))
  const observed = at.map((url) => send(`${url}${path}`, payment.header))
  await delay(300)
  await shop.onchain.setMining('automatic')
  await shop.onchain.mine()
  t.match(await readBought(await bought), { status: 200 })
  for (const response of await Promise.all(observed)) {
    t.equal(response.status, 409)
    await secrets.scanResponse(response)
  }
  t.equal(await shop.onchain.charges(addressOf(key)), 1)
})

t.test('keeps secrets out of the logs and out of unpaid answers', async (t) => {
  secrets.scan(shop.output())
  t.strictSame(secrets.leaked(), [])
})
