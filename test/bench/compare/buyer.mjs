// The requests of buyers.
import { setTimeout as sleep } from 'node:timers/promises'
import { challengeOf, send, sign, stockFetch } from '../../support/payment.ts'

const LOST = { status: undefined, text: 'no answer' }

/** Reads the response to a request; never throws. */
async function read(request) {
  try {
    const response = await request
    const body = await response.text()
    return { status: response.status, text: describe(response.status, body), response }
  } catch {
    return LOST
  }
}

/** The status, with the error code if the body has one. */
function describe(status, body) {
  if (status === 200) return '200'
  const code = /"code":"(\w+)"/.exec(body)?.[1]
  return code === undefined ? String(status) : `${status} ${code}`
}

export async function signedFor(shop, key) {
  return (await sign(await challengeOf(shop.url('/paid/work')), key)).header
}

export const sendPayment = (shop, path, header) => read(send(shop.url(path), header))

/** The unmodified @x402/fetch: requests, signs the offer and sends the payment once. */
export const payStock = (shop, path, key) => read(stockFetch(key)(shop.url(path)))

export const ask = (shop, path, options = {}) => read(fetch(shop.url(path), options))

/** Longer than the lease of a killed process. */
const PATIENCE_MS = 60_000

/** Sends the same payment until it is answered or refused: repeats after a lost answer, and after a 503 with `Retry-After`. */
export async function resend(shop, path, header) {
  const until = Date.now() + PATIENCE_MS
  for (;;) {
    const answer = await sendPayment(shop, path, header)
    const pause = answer.response?.headers.get('retry-after')
    const passing = answer.status === undefined || (answer.status === 503 && pause !== null)
    if (!passing || Date.now() > until) return answer
    await sleep(Math.min(Number(pause ?? 1), 2) * 1000)
  }
}
