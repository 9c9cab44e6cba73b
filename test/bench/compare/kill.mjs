import { setTimeout as sleep } from 'node:timers/promises'
import { resend, payStock, sendPayment, signedFor } from './buyer.mjs'
import { lost } from './count-texts.mjs'

const BUYERS = 8

const INSTANTS = [
  { words: 'kill -9 after the work, as the first transaction is about to be sent', killAt: beforeBroadcast },
  { words: 'kill -9 with transactions sent and not confirmed', killAt: afterBroadcast },
]

/**
 * Kills the seller during payments, then restarts it on the same data. Each buyer sends the same payment again, and
 * signs a new one when that is refused, as stock clients do.
 */
export async function killMidway(shop, { kills }) {
  const rows = []
  for (const { words, killAt } of INSTANTS) {
    const sum = { buyers: 0, charges: 0, answers: 0, twice: 0 }
    for (let kill = 0; kill < kills; kill += 1) await round(shop, killAt, sum)
    rows.push(
      [`${words}: payments under way`, sum.buyers],
      ['… answers got', sum.answers],
      ['… charges', sum.charges],
      ['… buyers charged twice', sum.twice],
      ['… money lost', lost(sum.charges, sum.answers)],
    )
  }
  return rows
}

async function round(shop, killAt, sum) {
  const buyers = []
  while (buyers.length < BUYERS) {
    const key = await shop.wallet()
    buyers.push({ key, path: shop.path('/paid/work'), header: await signedFor(shop, key) })
  }
  await killAt(shop, () => Promise.all(buyers.map(({ path, header }) => sendPayment(shop, path, header))))
  await shop.start()
  const answered = await Promise.all(buyers.map((buyer) => recover(shop, buyer)))
  const charged = await Promise.all(buyers.map(({ key }) => shop.chargesOf(key)))
  sum.buyers += BUYERS
  sum.answers += answered.filter(Boolean).length
  sum.charges += charged.reduce((one, other) => one + other, 0)
  sum.twice += charged.filter((charges) => charges > 1).length
}

async function recover(shop, { key, path, header }) {
  if ((await resend(shop, path, header)).status === 200) return true
  return (await payStock(shop, path, key)).status === 200
}

async function beforeBroadcast(shop, begin) {
  const { node } = shop
  node.onCall(async (method) => {
    if (method !== 'eth_sendRawTransaction') return
    node.set('down')
    shop.kill()
  })
  await begin()
  node.onCall(async () => {})
  node.set('open')
}

async function afterBroadcast(shop, begin) {
  const { node, mining } = shop
  await mining.setMining('manual')
  const sent = () => node.calls().filter((method) => method === 'eth_sendRawTransaction').length
  const before = sent()
  const answers = begin()
  while (sent() < before + BUYERS / 2) await sleep(5)
  // The node has the last of these by then, or never gets it.
  await sleep(50)
  shop.kill()
  await answers
  await mining.setMining('automatic')
  await mining.mine()
}
