import { setTimeout as sleep } from 'node:timers/promises'
import { sendPayment, signedFor } from './buyer.mjs'
import { countTexts } from './count-texts.mjs'

const COPIES = 50

/** Sends one payment fifty times at once, for work that takes a tenth of a second. */
export async function sendCopies(shop) {
  const header = await signedFor(shop, await shop.wallet())
  const path = shop.path('/paid/work')
  const before = { runs: shop.upstream.runs(), charges: await shop.charges() }
  shop.upstream.during(() => sleep(100))
  const answers = await Promise.all(Array.from({ length: COPIES }, () => sendPayment(shop, path, header)))
  shop.upstream.during(async () => {})
  return [
    [`${COPIES} copies of one payment at once: handler runs`, shop.upstream.runs() - before.runs],
    ['… charges', (await shop.charges()) - before.charges],
    ['… answers', countTexts(answers.map(({ text }) => text))],
  ]
}
