// A thousand buyers in the same moment: how late the event loop of the server comes meanwhile.
import { pay } from './paid.mjs'
import { printTable, showRange } from './figures.mjs'
import { openShop } from './shop.mjs'
import { OURS_PROBED } from './sellers.mjs'
import { startGenerator } from './start-generator.mjs'

const BUYERS = 1_000
const WALLETS = 100

/** Resolves to one run a round, each with what the loop did during it. */
export async function measureBurst({ paidRounds }) {
  const generator = startGenerator()
  const shop = await openShop(OURS_PROBED)
  const candidate = { shop, wallets: [], sold: 0 }
  const runs = []
  try {
    await shop.start()
    while (candidate.wallets.length < WALLETS) candidate.wallets.push(await shop.wallet())
    await pay(generator, candidate, { calls: BUYERS, buyers: WALLETS })
    for (let round = 0; round < paidRounds; round += 1) {
      await shop.lag()
      const run = await pay(generator, candidate, { calls: BUYERS, buyers: WALLETS, connections: BUYERS })
      runs.push({ ...run, ...(await shop.lag()) })
    }
    return runs
  } finally {
    generator.kill()
    await shop.close()
  }
}

export function reportBurst(runs) {
  printTable(
    `${BUYERS} payments in the same moment: how late the event loop comes, median (range over the rounds)`,
    ['p99, ms', 'longest, ms', 'own p99, ms', 'own longest, ms', 'calls/s', 'unpaid'],
    [
      [
        showRange(
          runs.map(({ lag }) => lag.p99),
          0,
        ),
        showRange(
          runs.map(({ lag }) => lag.max),
          0,
        ),
        showRange(
          runs.map(({ own }) => own.p99),
          0,
        ),
        showRange(
          runs.map(({ own }) => own.max),
          0,
        ),
        showRange(
          runs.map(({ rate }) => rate),
          0,
        ),
        String(runs.reduce((sum, { unexpected }) => sum + unexpected, 0)),
      ],
    ],
  )
}
