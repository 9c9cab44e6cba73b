// Paid calls: every payment signed beforehand, each seller on a chain of its own, in turn and in rounds.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { challengeOf, sign } from '../support/payment.ts'
import { startRedis } from '../support/redis.ts'
import { median, printTable, show } from './figures.mjs'
import { openShop } from './shop.mjs'
import { OURS_TWICE, SELLERS } from './sellers.mjs'
import { startGenerator } from './start-generator.mjs'
import { memory, processorSeconds } from './usage.mjs'

/** Buyers at once, each with a wallet of its own. */
const BUYERS = [1, 8, 32, 128]
const USUAL = 32
const LATENCY_MS = 100
const WARM_UP_CALLS = 1_280
const IDLE_MS = 1_000

/** Resolves to one row a seller: medians over the rounds. `calls`: payments of 32 buyers in a round. */
export async function measurePaid({ paidRounds, calls }) {
  const generator = startGenerator()
  const redis = await startRedis()
  const candidates = []
  try {
    for (const seller of [...SELLERS, OURS_TWICE]) {
      const shop = await openShop(seller)
      const candidate = { shop, wallets: [], sold: 0, runs: new Map(BUYERS.map((each) => [each, []])) }
      candidates.push(candidate)
      await shop.start({ rpcUrl: shop.chain.rpcUrl, redisUrl: `${redis.url}/0` })
      while (candidate.wallets.length < Math.max(...BUYERS)) candidate.wallets.push(await shop.wallet())
      // Not counted: the compiler is at work.
      await pay(generator, candidate, { calls: WARM_UP_CALLS, buyers: USUAL })
    }
    for (let round = 0; round < paidRounds; round += 1)
      for (const buyers of BUYERS)
        for (const candidate of candidates) {
          const amount = Math.max(buyers, buyers === 1 ? Math.ceil(calls / 4) : calls)
          candidate.runs.get(buyers).push(await pay(generator, candidate, { calls: amount, buyers }))
        }
    for (const candidate of candidates.filter(({ shop: { seller } }) => seller !== OURS_TWICE))
      candidate.asked = await countMethods(generator, candidate, calls)
    return await Promise.all(candidates.map(summarise))
  } finally {
    generator.kill()
    for (const { shop } of candidates) await shop.close()
    await redis.stop()
  }
}

/** Different arguments each time: a buyer who asks twice for the same may be answered from the first. */
export async function pay(generator, candidate, { calls, buyers, connections = buyers }) {
  const { shop, wallets } = candidate
  const challenge = await challengeOf(shop.url('/paid/answer'))
  const payments = []
  while (payments.length < calls)
    payments.push((await sign(challenge, wallets[payments.length % buyers])).header)
  return deliver(generator, candidate, { payments, connections, order: 'any' })
}

/** Sends payments over so many connections. `order`: of `own`, each connection sends those of one buyer. */
export async function deliver(generator, candidate, { payments, connections, order }) {
  const { shop } = candidate
  const paths = payments.map((_, index) => `/paid/answer?n=${candidate.sold + index + 1}`)
  candidate.sold += payments.length
  const { pids, ports } = shop
  const processes = [...pids, shop.chain.pid]
  const before = processes.map(processorSeconds)
  const block = await ask(shop, 'eth_blockNumber')
  generator.send({ ports, paths, payments, status: 200, connections, order })
  const [{ seconds, answered, unexpected }] = await once(generator, 'message')
  const spent = processes.map((pid, place) => {
    const now = processorSeconds(pid)
    return now === undefined ? undefined : ((now - before[place]) / answered) * 1e3
  })
  const cost = spent.slice(0, -1).reduce((sum, each) => sum + (each ?? Number.NaN), 0)
  const rate = (answered - unexpected) / seconds
  return { rate, unexpected, cost, chainCost: spent.at(-1), ...(await minedSince(shop, block, answered)) }
}

/** Gas and transactions for each answer. */
export async function minedSince(shop, first, answered) {
  const last = Number(await ask(shop, 'eth_blockNumber'))
  let [gas, transactions] = [0, 0]
  for (let number = Number(first) + 1; number <= last; number += 1) {
    const block = await ask(shop, 'eth_getBlockByNumber', `0x${number.toString(16)}`, false)
    gas += Number(block.gasUsed)
    transactions += block.transactions.length
  }
  return { gas: gas / answered, transactions: transactions / answered }
}

export async function ask({ chain }, method, ...params) {
  const response = await fetch(chain.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return (await response.json()).result
}

/** Methods asked of the node for each payment, and how many calls are answered when each of them takes 100 ms. */
async function countMethods(generator, candidate, calls) {
  const { shop } = candidate
  const { node } = shop
  shop.kill()
  await shop.start()
  await pay(generator, candidate, { calls: USUAL, buyers: USUAL })
  // A process that has just started checks what was settled before.
  await untilIdle(node)
  const before = node.calls().length
  await pay(generator, candidate, { calls, buyers: USUAL })
  const methods = (node.calls().length - before) / calls
  node.onCall(() => sleep(LATENCY_MS))
  const { rate } = await pay(generator, candidate, { calls, buyers: USUAL })
  return { methods, rate }
}

async function untilIdle(node) {
  for (let seen = -1; seen < node.calls().length;) {
    seen = node.calls().length
    await sleep(IDLE_MS)
  }
}

async function summarise({ shop, runs, sold, asked }) {
  const middle = (buyers, what) => median(runs.get(buyers).map((run) => run[what]))
  return {
    name: shop.seller.name,
    asked,
    loads: BUYERS.map((buyers) => ({
      buyers,
      rate: middle(buyers, 'rate'),
      cost: middle(buyers, 'cost'),
      chainCost: middle(buyers, 'chainCost'),
      gas: middle(buyers, 'gas'),
      transactions: middle(buyers, 'transactions'),
    })),
    unpaid: [...runs.values()].flat().reduce((sum, { unexpected }) => sum + unexpected, 0),
    sold,
    charges: await shop.charges(),
    memory: shop.pids.reduce((sum, pid) => sum + (memory(pid) ?? 0), 0),
  }
}

export function reportPaid(rows) {
  for (const [place, buyers] of BUYERS.entries())
    printTable(
      `Paid calls, ${buyers} at once, each settled on a local chain before it is answered`,
      ['', 'calls/s', 'ms of processor', 'of the chain', 'gas a call', 'transactions a call'],
      rows.map(({ name, loads }) => {
        const { rate, cost, chainCost, gas, transactions } = loads[place]
        return [name, show(rate, 0), show(cost, 2), show(chainCost, 2), show(gas, 0), show(transactions, 2)]
      }),
    )
  printTable(
    'All of them',
    ['', 'payments', 'charges', 'unpaid', 'MB resident'],
    rows.map(({ name, sold, charges, unpaid, memory: size }) => [
      name,
      String(sold),
      String(charges),
      String(unpaid),
      show(size, 0),
    ]),
  )
  const counted = rows.filter(({ asked }) => asked !== undefined)
  printTable(
    `The node, ${USUAL} at once`,
    ['', 'RPC methods a call', `calls/s when each takes ${LATENCY_MS} ms`],
    counted.map(({ name, asked }) => [name, show(asked.methods, 2), show(asked.rate, 0)]),
  )
  const [ours, peer] = rows
  printTable(
    'One against the other',
    ['', ...BUYERS.map((buyers) => `${buyers} at once`)],
    [
      [
        `${ours.name} / ${peer.name} by processor`,
        ...ours.loads.map(({ cost }, place) => show(peer.loads[place].cost / cost, 2)),
      ],
      ['gas of a call, against one alone', ...ours.loads.map(({ gas }) => show(gas / ours.loads[0].gas, 2))],
    ],
  )
}
