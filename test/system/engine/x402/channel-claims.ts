import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { LOCK_PATIENCE_MS } from '../../../../src/engine/base/money-times.ts'
import {
  channelClient,
  claimNow,
  contractReader,
  handmade,
  listChannels,
  openChannelShop,
  send,
  type ChannelShop,
} from '../../../support/channels.ts'
import { addressOf, randomKey, readHeader, type Hex } from '../../../support/payment.ts'
import { redisAbsence, startRedis } from '../../../support/redis.ts'
import { until } from '../../../support/until.ts'

t.setTimeout(600_000)

const PRICE = 1000n
const absence = redisAbsence()

async function openClosing(t: Test, more: Readonly<Record<string, string>> = {}): Promise<ChannelShop> {
  const shop = await openChannelShop(more)
  t.teardown(() => shop.close())
  return shop
}

/** The faucet of the chain sends one transaction after the other. */
async function wallets(shop: ChannelShop, count: number): Promise<Hex[]> {
  const keys: Hex[] = []
  while (keys.length < count) keys.push(await shop.wallet())
  return keys
}

/** 1,000 calls, fixed and metered, by 16 clients of the SDK through two processes on one ledger. */
async function sellThousand(t: Test, more: Readonly<Record<string, string>>): Promise<void> {
  const shop = await openClosing(t, more)
  const contract = contractReader(shop.chain.rpcUrl)
  const other = await shop.branch()
  const [CALLS, CHANNELS] = [1000, 16]
  const keys = await wallets(shop, CHANNELS)
  let answered = 0
  let due = 0n
  const buy = async (key: Hex, count: number): Promise<void> => {
    const buyer = channelClient(key, shop.chain.rpcUrl)
    for (let n = 1; n <= count; n += 1) {
      const { url } = n % 2 === 0 ? shop : other
      const ask = () => buyer.fetch(`${url}/paid/${n % 3 === 0 ? 'metered' : 'work'}?n=${n}`)
      let response = await ask()
      // A new channel may owe no more until the claim that is on its way.
      while (response.status === 429) {
        await response.body?.cancel()
        await delay(100)
        response = await ask()
      }
      if (response.status === 200) {
        answered += 1
        // A unit of the metered route costs 100, and the other one 1,000.
        due += n % 3 === 0 ? BigInt(n) * 100n : PRICE
      } else t.fail(`${response.status} of call ${n}`)
      await response.arrayBuffer()
    }
  }
  const counts = keys.map((_, place) => Math.floor(CALLS / CHANNELS) + (place < CALLS % CHANNELS ? 1 : 0))
  await Promise.all(keys.map((key, place) => buy(key, counts[place] ?? 0)))
  t.equal(answered, CALLS)
  t.equal(shop.upstream.runs(), CALLS)
  const claimed = await claimNow(shop, more)
  t.equal(claimed.code, 0, claimed.stderr)
  const { asset } = shop.chain
  t.strictSame(await contract.receiver(shop.payTo, asset), { claimed: due, settled: due })
  t.equal(await shop.chain.balance(shop.payTo), due)
  const rows = await listChannels(shop, more)
  t.equal(rows.length, CHANNELS)
  t.strictSame(
    rows.map(({ charged, claimed, unclaimed }) => [charged === claimed, unclaimed]),
    rows.map(() => [true, '0.000000']),
  )
}

t.test('LMDB: 1,000 calls over 16 channels are answered, charged and claimed once each', async (t) => {
  await sellThousand(t, {})
})

t.test('Redis: the same', absence === undefined ? {} : { skip: absence }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  await sellThousand(t, { REDIS_URL: redis.url })
})

t.test('claims a channel by itself once it owes enough, and is paid out', async (t) => {
  const shop = await openClosing(t)
  const buyer = channelClient(await shop.wallet(), shop.chain.rpcUrl)
  for (let n = 1; n <= 60; n += 1) t.equal((await buyer.fetch(`${shop.url}/paid/work?n=${n}`)).status, 200)
  await until('the money has arrived', async () => (await shop.chain.balance(shop.payTo)) >= 50n * PRICE)
  for (let n = 61; n <= 70; n += 1)
    t.equal((await buyer.fetch(`${shop.url}/paid/work?n=${n}`)).status, 200, 'the channel goes on')
})

t.test('claims before the end of a withdrawal, and sells nothing more on the channel', async (t) => {
  const shop = await openClosing(t)
  const contract = contractReader(shop.chain.rpcUrl)
  const channel = await handmade(shop, await shop.wallet())
  t.equal((await send(shop, '/paid/work?n=1', await channel.deposit(1000, 100_000))).status, 200)
  t.equal((await send(shop, '/paid/work?n=2', await channel.voucher(2000))).status, 200)
  await channel.call('initiateWithdraw', 100_000n)
  await until('it is claimed', async () => (await contract.channel(channel.id)).claimed === 2000n)
  const refused = await send(shop, '/paid/work?n=3', await channel.voucher(3000))
  t.equal(refused.status, 402)
  await shop.travel(901)
  await channel.call('finalizeWithdraw')
  t.strictSame(await contract.channel(channel.id), { balance: 2000n, claimed: 2000n })
  const emptied = await send(shop, '/paid/work?n=4', await channel.voucher(3000))
  t.equal(emptied.status, 402)
})

t.test('gives back what is left of a channel, after what it owes is claimed', async (t) => {
  const shop = await openClosing(t)
  const contract = contractReader(shop.chain.rpcUrl)
  const key = await shop.wallet()
  const buyer = channelClient(key, shop.chain.rpcUrl)
  for (const n of [1, 2, 3]) t.equal((await buyer.fetch(`${shop.url}/paid/work?n=${n}`)).status, 200)
  const before = await shop.chain.balance(addressOf(key))
  const runs = shop.upstream.runs()
  const done = await buyer.scheme.refund(`${shop.url}/paid/work`)
  t.match(done, { success: true, amount: '97000' })
  t.equal((await shop.chain.balance(addressOf(key))) - before, 97_000n)
  t.equal(shop.upstream.runs(), runs, 'nothing is run for it')
  const channel = await handmade(shop, key)
  t.strictSame(await contract.channel(channel.id), { balance: 3000n, claimed: 3000n })
  const copy = await send(shop, '/paid/work', await channel.refund(3000))
  t.match(readHeader(copy, 'payment-response'), { transaction: done.transaction })
  t.equal((await buyer.fetch(`${shop.url}/paid/work?n=4`)).status, 200, 'a new deposit opens it again')
  const small = await send(shop, '/paid/work', await channel.refund(4000, 9_999))
  t.match(readHeader(small, 'payment-required'), {
    error: 'invalid_batch_settlement_evm_refund_amount_invalid',
  })
  const wrong = await send(shop, '/paid/work', await channel.refund(3000, 20_000))
  t.match(readHeader(wrong, 'payment-required'), {
    error: 'invalid_batch_settlement_evm_cumulative_amount_mismatch',
  })
})

t.test('gives a client of the SDK its refund by GET at a route that is sold by POST', async (t) => {
  const shop = await openClosing(t)
  const key = await shop.wallet()
  const buyer = channelClient(key, shop.chain.rpcUrl)
  const buy = { method: 'POST', body: '{"n":3}', headers: { 'Content-Type': 'application/json' } }
  const bought = await buyer.fetch(`${shop.url}/paid/posted`, buy)
  t.equal(bought.status, 200, await bought.text())
  const runs = shop.upstream.runs()
  const voucher = await (await handmade(shop, key)).voucher(2000)
  const refused = await send(shop, '/paid/posted', voucher)
  t.equal(refused.status, 405, 'nothing is sold by GET')
  t.match(await buyer.scheme.refund(`${shop.url}/paid/posted`), { success: true, amount: '99000' })
  t.equal(shop.upstream.runs(), runs)
})

t.test('claims by command right after a reorganization what it has undone', async (t) => {
  const shop = await openClosing(t)
  const contract = contractReader(shop.chain.rpcUrl)
  const channel = await handmade(shop, await shop.wallet())
  t.equal((await send(shop, '/paid/work', await channel.deposit(1000, 100_000))).status, 200)
  t.equal((await send(shop, '/paid/work?n=2', await channel.voucher(2000))).status, 200)
  t.equal((await claimNow(shop)).code, 0)
  t.equal(await shop.chain.balance(shop.payTo), 2n * PRICE)
  // The claim and the payout.
  await shop.onchain.undo(2)
  t.equal(await shop.chain.balance(shop.payTo), 0n)
  // What is undone waits in the pool: blocks come while the command does.
  let isOver = false
  const claiming = claimNow(shop).finally(() => (isOver = true))
  while (!isOver) {
    await shop.onchain.mine()
    await delay(100)
  }
  const again = await claiming
  t.equal(again.code, 0, again.stderr)
  t.equal((await contract.channel(channel.id)).claimed, 2n * PRICE)
  // The next one pays out what could not be sent while older transactions of the account were in no block.
  t.equal((await claimNow(shop)).code, 0)
  t.strictSame(
    [(await contract.channel(channel.id)).claimed, await shop.chain.balance(shop.payTo)],
    [2n * PRICE, 2n * PRICE],
  )
})

t.test('claims channels of an earlier key, and opens new ones for the present one', async (t) => {
  const [old, next] = [randomKey(), randomKey()]
  const shop = await openClosing(t, { CHANNEL_AUTHORIZER_KEY: old })
  const contract = contractReader(shop.chain.rpcUrl)
  const channel = await handmade(shop, await shop.wallet())
  t.equal((await send(shop, '/paid/work', await channel.deposit(1000, 100_000))).status, 200)
  const turned = { CHANNEL_AUTHORIZER_KEY: `${next},${old}` }
  const server = await shop.branch(turned)
  const refused = await send(server, '/paid/work', await channel.voucher(2000))
  t.equal(refused.status, 402)
  t.equal((await claimNow(shop, turned)).code, 0)
  t.equal((await contract.channel(channel.id)).claimed, 1000n)
})

t.test('answers a lost call again for the same voucher, and charges it once', async (t) => {
  const shop = await openClosing(t)
  const channel = await handmade(shop, await shop.wallet())
  t.equal((await send(shop, '/paid/work?n=1', await channel.deposit(1000, 100_000))).status, 200)
  const header = await channel.voucher(2000)
  const controller = new AbortController()
  shop.upstream.during(async () => controller.abort())
  await fetch(`${shop.url}/paid/work?n=2`, {
    headers: { 'PAYMENT-SIGNATURE': header },
    signal: controller.signal,
  }).catch(() => undefined)
  shop.upstream.during(async () => {})
  const again = await send(shop, '/paid/work?n=2', header)
  t.equal(again.status, 200)
  t.match(await again.json(), { n: 2 })
  const [row] = await listChannels(shop)
  t.match(row, { charged: '0.002000' })
})

t.test('one channel that cannot be claimed does not hold up the others', async (t) => {
  const shop = await openClosing(t)
  const contract = contractReader(shop.chain.rpcUrl)
  const channels = await Promise.all((await wallets(shop, 7)).map((key) => handmade(shop, key)))
  for (const channel of channels)
    t.equal((await send(shop, '/paid/work', await channel.deposit(1000, 100_000))).status, 200)
  const [bad, ...good] = channels
  if (bad === undefined) throw new Error('there are seven')
  // As a node outage that is longer than the delay would leave it.
  shop.node.set('down')
  await bad.call('initiateWithdraw', 100_000n)
  await shop.travel(901)
  await bad.call('finalizeWithdraw')
  shop.node.set('open')
  const { code } = await claimNow(shop)
  t.equal(code, 1)
  for (const { id } of good) t.equal((await contract.channel(id)).claimed, 1000n)
  t.equal(await shop.chain.balance(shop.payTo), 6n * PRICE)
  const rows = await listChannels(shop)
  t.equal(rows.filter(({ state }) => state !== 'open').length, 1)
})

t.test('claims again what a reorganization has undone', async (t) => {
  const shop = await openClosing(t)
  const contract = contractReader(shop.chain.rpcUrl)
  const channel = await handmade(shop, await shop.wallet())
  t.equal((await send(shop, '/paid/work', await channel.deposit(1000, 100_000))).status, 200)
  for (let n = 2; n <= 50; n += 1)
    if ((await send(shop, `/paid/work?n=${n}`, await channel.voucher(1000 * n))).status !== 200)
      t.fail(`${n}`)
  await until('it is paid out', async () => (await shop.chain.balance(shop.payTo)) === 50n * PRICE)
  // The claim and the payout.
  await shop.onchain.undo(2)
  t.equal(await shop.chain.balance(shop.payTo), 0n)
  await shop.server.said(/a reorganization has undone the claim/)
  await until('it is claimed again', async () => (await contract.channel(channel.id)).claimed === 50n * PRICE)
  await until('it is paid out again', async () => (await shop.chain.balance(shop.payTo)) === 50n * PRICE)
})

t.test('loses nothing when processes are killed at any time', async (t) => {
  const shop = await openClosing(t)
  const contract = contractReader(shop.chain.rpcUrl)
  const keys = await wallets(shop, 4)
  const charged = new Map<string, number>()
  let stopped = false
  let restartedAt = Date.now()
  const buy = async (key: Hex): Promise<void> => {
    const buyer = channelClient(key, shop.chain.rpcUrl)
    for (let n = 1; !stopped; n += 1)
      // Each process that dies may leave the channel locked.
      for (const begun = Date.now(); ; await delay(50)) {
        let fault: unknown
        const response = await buyer
          .fetch(`${shop.url}/paid/work?n=${(n % 1000) + 1}`)
          .catch((cause: unknown) => void (fault = cause))
        const body = await response?.text().catch(() => undefined)
        if (response?.status === 200 && body !== undefined) {
          charged.set(key, n)
          break
        }
        if (Date.now() > Math.max(begun, restartedAt) + 3 * LOCK_PATIENCE_MS)
          throw new Error(`${response?.status} ${body} ${String(fault)}`)
      }
  }
  const kill = async (): Promise<void> => {
    for (let kills = 0; kills < 6; kills += 1) {
      await delay(1500 + 137 * kills)
      await shop.restart()
      restartedAt = Date.now()
    }
    stopped = true
  }
  await Promise.all([kill(), ...keys.map(buy)])
  await until('everything is claimed', async () => {
    await claimNow(shop)
    return (await listChannels(shop)).every(({ unclaimed }) => unclaimed === '0.000000')
  })
  const answers = [...charged.values()].reduce((sum, count) => sum + count, 0)
  const { claimed } = await contract.receiver(shop.payTo, shop.chain.asset)
  t.equal(claimed, PRICE * BigInt(answers), `${answers} answers`)
})
