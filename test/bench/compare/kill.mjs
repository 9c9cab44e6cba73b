import { setTimeout as sleep } from 'node:timers/promises'
import { insist, payStock, sendPayment, signedFor } from './buyer.mjs'
import { lost } from './tally.mjs'

const BUYERS = 8

const INSTANTS = [
  { words: 'kill -9 after the work, as the first transaction is about to be sent', strike: beforeBroadcast },
  { words: 'kill -9 with transactions sent and not confirmed', strike: afterBroadcast },
]

/**
 * SIGKILL with payments under way, then a restart on what is left. Each buyer sends the same payment again; whoever is
 * refused signs a new one, as stock clients do.
 */
export async function killMidway(market, { kills }) {
  const rows = []
  for (const { words, strike } of INSTANTS) {
    const sum = { buyers: 0, charges: 0, answers: 0, twice: 0 }
    for (let kill = 0; kill < kills; kill += 1) await round(market, strike, sum)
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

async function round(market, strike, sum) {
  const buyers = []
  while (buyers.length < BUYERS) {
    const key = await market.wallet()
    buyers.push({ key, path: market.path('/paid/work'), header: await signedFor(market, key) })
  }
  await strike(market, () => Promise.all(buyers.map(({ path, header }) => sendPayment(market, path, header))))
  await market.start()
  const answered = await Promise.all(buyers.map((buyer) => recover(market, buyer)))
  const charged = await Promise.all(buyers.map(({ key }) => market.chargesOf(key)))
  sum.buyers += BUYERS
  sum.answers += answered.filter(Boolean).length
  sum.charges += charged.reduce((one, other) => one + other, 0)
  sum.twice += charged.filter((charges) => charges > 1).length
}

async function recover(market, { key, path, header }) {
  if ((await insist(market, path, header)).status === 200) return true
  return (await payStock(market, path, key)).status === 200
}

async function beforeBroadcast(market, begin) {
  const { node } = market
  node.onCall(async (method) => {
    if (method !== 'eth_sendRawTransaction') return
    node.set('down')
    market.kill()
  })
  await begin()
  node.onCall(async () => {})
  node.set('open')
}

async function afterBroadcast(market, begin) {
  const { node, mining } = market
  await mining.setMining('by hand')
  const sent = () => node.calls().filter((method) => method === 'eth_sendRawTransaction').length
  const before = sent()
  const answers = begin()
  while (sent() < before + BUYERS / 2) await sleep(5)
  // The node has the last of these by then, or never gets it.
  await sleep(50)
  market.kill()
  await answers
  await mining.setMining('automatic')
  await mining.mine()
}
