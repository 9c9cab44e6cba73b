// npm run compare [-- --quick]: ours next to a peer of a named version, in one run. It prints and judges nothing.
import { parseArgs } from 'node:util'
import { bootAlone } from './compare/boot.mjs'
import { sendCopies } from './compare/copies.mjs'
import { dropSettlement } from './compare/dropped.mjs'
import { killMidway } from './compare/kill.mjs'
import { oddRequests } from './compare/requests.mjs'
import { printComparison } from './compare/table.mjs'
import { openShop } from './shop.mjs'
import { measurePaid } from './paid.mjs'
import { SELLERS } from './sellers.mjs'

const SCENARIOS = [sendCopies, killMidway, dropSettlement, bootAlone, oddRequests]

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const scale = values.quick
  ? { kills: 1, drops: 1, paidRounds: 3, calls: 100 }
  : { kills: 3, drops: 3, paidRounds: 5, calls: 200 }

// Servers and chains end with this process, which has to end by itself for that.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

printComparison(SELLERS, await Promise.all(SELLERS.map(count)), await measurePaid(scale), scale)

async function count(seller) {
  const shop = await openShop(seller)
  try {
    await shop.start()
    const rows = []
    for (const scenario of SCENARIOS) {
      rows.push(...(await scenario(shop, scale)))
      console.error(`${seller.name}: ${scenario.name} counted`)
    }
    return rows
  } finally {
    await shop.close()
  }
}
