// Calls through channels: every voucher signed beforehand, each seller on a chain of its own, in turn and in rounds.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { channelClient, claimNow, contractReader, handmade, openChannelShop } from '../support/channels.ts'
import { startRedis } from '../support/redis.ts'
import { printTable, show, showRange } from './figures.mjs'
import { deliver, minedSince, pay, ask } from './paid.mjs'
import { CHANNEL_SELLERS, EXACT } from './sellers.mjs'
import { openShop } from './shop.mjs'
import { startGenerator } from './start-generator.mjs'

/** Buyers at once, each with a channel of its own. */
const BUYERS = [1, 32]
const MOST = Math.max(...BUYERS)
const PRICE = 1_000
const DEPOSIT = 2_000_000
const WARM_UP_CALLS = 1_280
const AGAIN_MS = 100
/** Of those whose gas is counted. */
const CHANNELS = 16
const CATALOG = fileURLToPath(new URL('paid/channels.yaml', import.meta.url))
const HANDLERS = fileURLToPath(new URL('paid/handlers', import.meta.url))

/** Resolves to one row a seller, with the figures of each round. `calls`: vouchers of 32 buyers in a round. */
export async function measureChannels({ paidRounds, calls }) {
  const generator = startGenerator()
  const redis = await startRedis()
  const candidates = []
  try {
    for (const [place, seller] of [...CHANNEL_SELLERS, EXACT].entries()) {
      const shop = await openShop(seller)
      const runs = new Map(BUYERS.map((each) => [each, []]))
      const candidate = { shop, wallets: [], channels: [], sold: 0, runs }
      candidates.push(candidate)
      await shop.start({ redisUrl: `${redis.url}/${place}` })
      while (candidate.wallets.length < MOST) candidate.wallets.push(await shop.wallet())
      if (seller !== EXACT) for (const key of candidate.wallets) await openChannel(candidate, key)
      // Not counted: the compiler is at work.
      await sell(generator, candidate, { calls: WARM_UP_CALLS, buyers: MOST })
    }
    for (let round = 0; round < paidRounds; round += 1)
      for (const buyers of BUYERS)
        for (const candidate of candidates) {
          const amount = buyers === 1 ? Math.ceil(calls / 4) : calls
          candidate.runs.get(buyers).push(await sell(generator, candidate, { calls: amount, buyers }))
        }
    return candidates.map(({ shop: { seller }, runs, sold }) => ({
      name: seller.name,
      runs,
      sold,
      unpaid: [...runs.values()].flat().reduce((sum, { unexpected }) => sum + unexpected, 0),
    }))
  } finally {
    generator.kill()
    for (const { shop } of candidates) await shop.close()
    await redis.stop()
  }
}

async function openChannel({ shop, channels }, key) {
  const path = '/paid/answer'
  const channel = await handmade({ url: shop.url('') }, key, path)
  const headers = { 'payment-signature': await channel.deposit(PRICE, DEPOSIT) }
  const response = await fetch(shop.url(path), { headers })
  if (response.status !== 200) {
    const said = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString()
    throw new Error(`${shop.seller.name} takes no deposit: ${response.status} ${said}`)
  }
  await response.arrayBuffer()
  channels.push({ channel, charged: PRICE })
}

/** Sells by vouchers, or by scheme exact. */
async function sell(generator, candidate, { calls, buyers }) {
  if (candidate.channels.length === 0) return pay(generator, candidate, { calls, buyers })
  const payments = []
  while (payments.length < calls) {
    const own = candidate.channels[payments.length % buyers]
    own.charged += PRICE
    payments.push(await own.channel.voucher(own.charged))
  }
  // A connection has a channel of its own, whose vouchers follow each other.
  return deliver(generator, candidate, { payments, connections: buyers, order: 'own' })
}

export function reportChannels(rows) {
  const of = (row, buyers, what) => row.runs.get(buyers).map((run) => run[what])
  printTable(
    'Calls through channels: median (range over the rounds); the processor is the seller’s, without Redis',
    [
      '',
      ...BUYERS.map((buyers) => `ms of processor, ${buyers} at once`),
      'ms a call, one buyer',
      'calls',
      'unpaid',
    ],
    rows.map((row) => [
      row.name,
      ...BUYERS.map((buyers) => showRange(of(row, buyers, 'cost'), 2)),
      showRange(
        of(row, 1, 'rate').map((rate) => 1000 / rate),
        2,
      ),
      String(row.sold),
      String(row.unpaid),
    ]),
  )
  const ours = rows.filter(({ name }) => name.startsWith('ours'))
  const peers = rows.filter((row) => !ours.includes(row))
  const ratios = (own, peer) =>
    of(own, MOST, 'cost').map((cost, round) => of(peer, MOST, 'cost')[round] / cost)
  printTable(
    `One against the other by processor, ${MOST} at once: median (range over the rounds)`,
    ['', ...ours.map(({ name }) => name)],
    peers.map((peer) => [peer.name, ...ours.map((own) => showRange(ratios(own, peer), 1))]),
  )
}

/**
 * What the calls of 16 channels cost in gas, deposits, claims and payouts counted: clients of the x402 SDK buy from two
 * processes with one ledger in Redis. `gasCalls`: numbers of calls of a channel.
 */
export async function measureChannelGas({ gasCalls }) {
  const rows = []
  for (const calls of gasCalls) rows.push(await countGas(calls))
  return rows
}

async function countGas(calls) {
  const folder = mkdtempSync(join(tmpdir(), 'ratecard-bench-'))
  const redis = await startRedis()
  // One deposit of each channel is enough.
  const deposit = Math.max((calls * PRICE) / 1e6, 0.1)
  const catalog = join(folder, 'catalog.yaml')
  writeFileSync(
    catalog,
    readFileSync(CATALOG, 'utf8').replace('least_deposit: 1', `least_deposit: ${deposit}`),
  )
  const settings = { CATALOG: catalog, REDIS_URL: redis.url }
  const shop = await openChannelShop(settings, ['--handlers', HANDLERS])
  try {
    const { url: other } = await shop.branch()
    const keys = []
    while (keys.length < CHANNELS) keys.push(await shop.wallet())
    const first = await ask(shop, 'eth_blockNumber')
    const before = shop.node.calls().length
    const begun = performance.now()
    const answers = await Promise.all(keys.map((key) => buy(shop, other, key, calls)))
    const seconds = (performance.now() - begun) / 1000
    const { code, stderr } = await claimNow(shop, settings)
    if (code !== 0) throw new Error(stderr)
    const answered = answers.reduce((sum, each) => sum + each, 0)
    const { claimed, settled } = await contractReader(shop.chain.rpcUrl).receiver(
      shop.payTo,
      shop.chain.asset,
    )
    return {
      calls,
      answered,
      due: answered * PRICE,
      claimed: Number(claimed),
      settled: Number(settled),
      asked: countBy(shop.node.calls().slice(before)),
      seconds,
      ...(await minedSince(shop, first, answered)),
    }
  } finally {
    await shop.close()
    await redis.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function countBy(methods) {
  const counts = new Map()
  for (const method of methods) counts.set(method, (counts.get(method) ?? 0) + 1)
  return counts
}

/** Resolves to the number of answers. */
async function buy(shop, other, key, calls) {
  const { fetch: paid } = channelClient(key, shop.chain.rpcUrl)
  for (let n = 1; n <= calls;) {
    const response = await paid(`${n % 2 === 0 ? shop.url : other}/paid/answer?n=${n}`)
    await response.arrayBuffer()
    if (response.status === 200) n += 1
    // A channel may owe no more until the claim that is on its way.
    else if (response.status === 429) await sleep(AGAIN_MS)
    else throw new Error(`${response.status} of call ${n}`)
  }
  return calls
}

export function reportChannelGas(rows) {
  printTable(
    `Gas of ${CHANNELS} channels, deposits, claims and payouts counted; the SDK’s client, two processes on Redis`,
    ['calls a channel', 'answers', 'due', 'claimed', 'paid out', 'transactions', 'gas a call', 'seconds'],
    rows.map(({ calls, answered, due, claimed, settled, transactions, gas, seconds }) => [
      String(calls),
      ...[answered, due, claimed, settled, Math.round(transactions * answered)].map(String),
      show(gas, 0),
      show(seconds, 0),
    ]),
  )
  const methods = [...new Set(rows.flatMap(({ asked }) => [...asked.keys()]))].sort((one, other) =>
    one.localeCompare(other),
  )
  printTable(
    'RPC methods in that time: none for a voucher; the watch and the looks at blocks go by the clock',
    ['calls a channel', 'a second', ...methods],
    rows.map(({ calls, asked, seconds }) => [
      String(calls),
      show([...asked.values()].reduce((sum, count) => sum + count, 0) / seconds, 1),
      ...methods.map((method) => String(asked.get(method) ?? 0)),
    ]),
  )
}
