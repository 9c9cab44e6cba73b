import { setTimeout as sleep } from 'node:timers/promises'
import { payStock } from './buyer.mjs'
import { lost, tally } from './tally.mjs'

/**
 * The transaction reaches the node, its answer and everything later does not come back. Once the buyer has been told
 * something, the node is there again, and the buyer, with @x402/fetch, asks anew.
 */
export async function dropSettlement(market, { drops }) {
  const seen = { first: [], second: [], charges: 0, answers: 0 }
  for (let drop = 0; drop < drops; drop += 1) {
    const key = await market.wallet()
    const path = market.path('/paid/work')
    market.node.set('broken_after_send')
    const first = await payStock(market, path, key)
    market.node.set('open')
    if (!market.alive()) await market.start()
    await sleep(500)
    const second = first.status === 200 ? first : await payStock(market, path, key)
    seen.first.push(first.text)
    seen.second.push(second.text)
    seen.charges += await market.chargesOf(key)
    seen.answers += second.status === 200 ? 1 : 0
  }
  return [
    [
      'The node is lost right after a transaction was sent to it: the buyer with @x402/fetch gets',
      tally(seen.first),
    ],
    ['… asks again half a second after the node is back and gets', tally(seen.second)],
    ['… charges', seen.charges],
    ['… money lost', lost(seen.charges, seen.answers)],
  ]
}
