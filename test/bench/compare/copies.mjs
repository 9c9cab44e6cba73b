import { setTimeout as sleep } from 'node:timers/promises'
import { sendPayment, signedFor } from './buyer.mjs'
import { tally } from './tally.mjs'

const COPIES = 50

/** One payment, sent fifty times at once, for work that takes a tenth of a second. */
export async function sendCopies(market) {
  const header = await signedFor(market, await market.wallet())
  const path = market.path('/paid/work')
  const before = { runs: market.workplace.runs(), charges: await market.charges() }
  market.workplace.during(() => sleep(100))
  const answers = await Promise.all(Array.from({ length: COPIES }, () => sendPayment(market, path, header)))
  market.workplace.during(async () => {})
  return [
    [`${COPIES} copies of one payment at once: handler runs`, market.workplace.runs() - before.runs],
    ['… charges', (await market.charges()) - before.charges],
    ['… answers', tally(answers.map(({ text }) => text))],
  ]
}
