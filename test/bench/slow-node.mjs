// Paid calls while the node takes its time: one buyer, and many at once, who are known or have never paid before.
import { setTimeout as sleep } from 'node:timers/promises'
import { tripsDuring } from '../support/rpc-trips.ts'
import { pay } from './paid.mjs'
import { printTable, show, showRange } from './figures.mjs'
import { openShop } from './shop.mjs'
import { OURS } from './sellers.mjs'
import { startGenerator } from './start-generator.mjs'

const DELAYS_MS = [0, 50, 100]
const ALONE = { name: 'one buyer', buyers: 1 }
const KNOWN = { name: '256 at once, known', buyers: 256 }
const NEW = { name: '256 at once, new', buyers: 256 }
const LOADS = [ALONE, KNOWN, NEW]
const WARM_UP_CALLS = 1_280

/** Resolves to the runs of each load at each delay, the seller being the same. `lone`: calls of one buyer in a round. */
export async function measureSlowNode({ paidRounds, calls }) {
  const generator = startGenerator()
  const shop = await openShop(OURS)
  const candidate = { shop, wallets: [], sold: 0 }
  const newcomers = { shop, wallets: [], sold: 0 }
  const runs = new Map(LOADS.map((load) => [load, new Map(DELAYS_MS.map((ms) => [ms, []]))]))
  try {
    await shop.start()
    candidate.wallets = await walletsOf(shop, KNOWN.buyers)
    await pay(generator, candidate, { calls: WARM_UP_CALLS, buyers: KNOWN.buyers })
    for (let round = 0; round < paidRounds; round += 1)
      for (const load of LOADS)
        for (const ms of DELAYS_MS) {
          const by = load === NEW ? newcomers : candidate
          if (load === NEW) newcomers.wallets = await walletsOf(shop, load.buyers)
          // The same arguments again would be another buyer's call, not a repeated one.
          newcomers.sold = candidate.sold = Math.max(newcomers.sold, candidate.sold)
          shop.node.onCall(() => (ms === 0 ? undefined : sleep(ms)))
          const amount =
            load === ALONE ? Math.ceil(calls / 16) : load === KNOWN ? 2 * load.buyers : load.buyers
          runs
            .get(load)
            .get(ms)
            .push(await pay(generator, by, { calls: amount, buyers: load.buyers }))
          shop.node.onCall(async () => undefined)
        }
    const trips = await tripsDuring(shop.node, () => pay(generator, candidate, { calls: 1, buyers: 1 }))
    return { runs, trips }
  } finally {
    generator.kill()
    await shop.close()
  }
}

async function walletsOf(shop, amount) {
  const wallets = []
  while (wallets.length < amount) wallets.push(await shop.wallet())
  return wallets
}

export function reportSlowNode({ runs, trips }) {
  const rates = (load, ms) =>
    runs
      .get(load)
      .get(ms)
      .map(({ rate }) => rate)
  printTable(
    'Calls a second while each call to the node takes so long, one account: median (range over the rounds)',
    ['', ...DELAYS_MS.map((ms) => `${ms} ms`), '50 ms / 0 ms', 'unpaid'],
    LOADS.map((load) => [
      load.name,
      ...DELAYS_MS.map((ms) => showRange(rates(load, ms), load === ALONE ? 1 : 0)),
      showRange(
        rates(load, 0).map((rate, round) => rates(load, 50)[round] / rate),
        2,
      ),
      String([...runs.get(load).values()].flat().reduce((sum, { unexpected }) => sum + unexpected, 0)),
    ]),
  )
  printTable(
    'One buyer alone: milliseconds a call',
    ['', ...DELAYS_MS.map((ms) => `${ms} ms`), 'round trips of one call', 'methods'],
    [
      [
        ALONE.name,
        ...DELAYS_MS.map((ms) =>
          showRange(
            rates(ALONE, ms).map((rate) => 1_000 / rate),
            0,
          ),
        ),
        String(trips.length),
        show(trips.flat().length, 0),
      ],
    ],
  )
}
