// Paid calls through a facilitator: each seller with a chain and a facilitator of its own, in turn and in rounds.
import { printTable, showRange } from './figures.mjs'
import { pay } from './paid.mjs'
import { freePort, openShop } from './shop.mjs'
import { startPeer } from './servers/peer.mjs'
import { SELLERS } from './sellers.mjs'
import { startGenerator } from './start-generator.mjs'

/** Buyers at once, each with a wallet of its own. */
const BUYERS = [1, 32]
const WARM_UP_CALLS = 1_000

/** Resolves to one row a seller, with the figures of each round. `calls`: payments of 32 buyers in a round. */
export async function measureFacilitated({ paidRounds, calls }) {
  const generator = startGenerator()
  const candidates = []
  try {
    for (const seller of SELLERS) {
      const shop = await openShop(seller)
      const port = await freePort()
      const facilitator = await startPeer('facilitator', {
        port,
        signerKey: shop.signerKey,
        rpcUrl: shop.chain.rpcUrl,
      })
      const candidate = {
        shop,
        facilitator,
        wallets: [],
        sold: 0,
        runs: new Map(BUYERS.map((each) => [each, []])),
      }
      candidates.push(candidate)
      await shop.start({
        facilitatorUrl: `http://127.0.0.1:${port}`,
        signerKey: undefined,
        rpcUrl: undefined,
      })
      while (candidate.wallets.length < Math.max(...BUYERS)) candidate.wallets.push(await shop.wallet())
      await pay(generator, candidate, { calls: WARM_UP_CALLS, buyers: Math.max(...BUYERS) })
    }
    for (let round = 0; round < paidRounds; round += 1)
      for (const buyers of BUYERS)
        for (const candidate of candidates) {
          const amount = buyers === 1 ? Math.ceil(calls / 4) : calls
          candidate.runs.get(buyers).push(await pay(generator, candidate, { calls: amount, buyers }))
        }
    return await Promise.all(
      candidates.map(async ({ shop, runs, sold }) => ({
        name: shop.seller.name,
        runs,
        sold,
        charges: await shop.charges(),
        unpaid: [...runs.values()].flat().reduce((sum, { unexpected }) => sum + unexpected, 0),
      })),
    )
  } finally {
    generator.kill()
    for (const { shop, facilitator } of candidates) {
      facilitator.stop()
      await shop.close()
    }
  }
}

export function reportFacilitated(rows) {
  const costs = (row, buyers) => row.runs.get(buyers).map(({ cost }) => cost)
  printTable(
    'Paid calls through a facilitator, ms of processor of the seller a call: median (range over the rounds)',
    ['', ...BUYERS.map((buyers) => `${buyers} at once`), 'payments', 'charges', 'unpaid'],
    rows.map((row) => [
      row.name,
      ...BUYERS.map((buyers) => showRange(costs(row, buyers), 2)),
      String(row.sold),
      String(row.charges),
      String(row.unpaid),
    ]),
  )
  const [ours, peer] = rows
  const ratios = (buyers) => costs(ours, buyers).map((cost, round) => costs(peer, buyers)[round] / cost)
  printTable(
    'One against the other, by processor: median (range over the rounds)',
    ['', ...BUYERS.map((buyers) => `${buyers} at once`)],
    [[`${ours.name} / ${peer.name}`, ...BUYERS.map((buyers) => showRange(ratios(buyers), 2))]],
  )
}
