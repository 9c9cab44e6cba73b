// Paid calls of one worker and of two, side by side: each worker with an account of its own.
import { printTable, showRange } from './figures.mjs'
import { pay } from './paid.mjs'
import { OURS, OURS_BY_WORKERS } from './sellers.mjs'
import { openShop } from './shop.mjs'
import { startGenerator } from './start-generator.mjs'
import { addressOf, randomKey } from '../support/payment.ts'

const BUYERS = 32
const GAS = 10n ** 18n
const WARM_UP_CALLS = 1_280

/** Resolves to the runs of each. `calls`: payments in a round. */
export async function measureWorkers({ paidRounds, calls }) {
  const generator = startGenerator()
  const candidates = []
  try {
    for (const seller of [OURS, OURS_BY_WORKERS]) {
      const shop = await openShop(seller)
      const candidate = { shop, wallets: [], sold: 0, runs: [] }
      candidates.push(candidate)
      const other = randomKey()
      await shop.chain.setGas(addressOf(other), GAS)
      await shop.start({ signerKey: seller === OURS ? shop.signerKey : `${shop.signerKey},${other}` })
      while (candidate.wallets.length < BUYERS) candidate.wallets.push(await shop.wallet())
      await pay(generator, candidate, { calls: WARM_UP_CALLS, buyers: BUYERS })
    }
    for (let round = 0; round < paidRounds; round += 1)
      for (const candidate of candidates)
        candidate.runs.push(await pay(generator, candidate, { calls, buyers: BUYERS }))
    return candidates.map(({ shop, runs }) => ({ name: shop.seller.name, runs }))
  } finally {
    generator.kill()
    for (const { shop } of candidates) await shop.close()
  }
}

export function reportWorkers(rows) {
  const of = (runs, what) => runs.map((run) => run[what])
  printTable(
    `Paid calls of one worker and of two, ${BUYERS} at once: median (range over the rounds)`,
    ['', 'calls/s', 'ms of processor', 'unpaid'],
    rows.map(({ name, runs }) => [
      name,
      showRange(of(runs, 'rate'), 0),
      showRange(of(runs, 'cost'), 2),
      String(of(runs, 'unexpected').reduce((sum, each) => sum + each, 0)),
    ]),
  )
  const [one, two] = rows
  const ratios = (what) => one.runs.map((run, round) => two.runs[round][what] / run[what])
  printTable(
    'One against the other',
    ['', 'by calls/s', 'by processor'],
    [[`${two.name} / one`, showRange(ratios('rate'), 2), showRange(ratios('cost'), 2)]],
  )
}
