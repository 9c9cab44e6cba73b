import { setTimeout as sleep } from 'node:timers/promises'
import { payStock } from './buyer.mjs'
import { countTexts, lost } from './count-texts.mjs'

/**
 * The transaction reaches the node, but its response and all later ones are lost. After the buyer has an answer the node
 * is back, and the buyer calls again with @x402/fetch.
 */
export async function dropSettlement(shop, { drops }) {
  const seen = { first: [], second: [], charges: 0, answers: 0 }
  for (let drop = 0; drop < drops; drop += 1) {
    const key = await shop.wallet()
    const path = shop.path('/paid/work')
    shop.node.set('broken_after_send')
    const first = await payStock(shop, path, key)
    shop.node.set('open')
    if (!shop.alive()) await shop.start()
    await sleep(500)
    const second = first.status === 200 ? first : await payStock(shop, path, key)
    seen.first.push(first.text)
    seen.second.push(second.text)
    seen.charges += await shop.chargesOf(key)
    seen.answers += second.status === 200 ? 1 : 0
  }
  return [
    [
      'The node is lost right after a transaction was sent to it: the buyer with @x402/fetch gets',
      countTexts(seen.first),
    ],
    ['… asks again half a second after the node is back and gets', countTexts(seen.second)],
    ['… charges', seen.charges],
    ['… money lost', lost(seen.charges, seen.answers)],
  ]
}
