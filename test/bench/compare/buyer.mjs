// What buyers do.
import { setTimeout as sleep } from 'node:timers/promises'
import { challengeOf, send, sign, stockFetch } from '../../support/payment.ts'

const LOST = { status: undefined, text: 'no answer' }

/** One request to its end; never throws. */
async function read(request) {
  try {
    const response = await request
    const body = await response.text()
    return { status: response.status, text: describe(response.status, body), response }
  } catch {
    return LOST
  }
}

/** Status with the code of our problems, or with what the body says instead. */
function describe(status, body) {
  if (status === 200) return '200'
  const code = /"code":"(\w+)"/.exec(body)?.[1]
  return code === undefined ? String(status) : `${status} ${code}`
}

export async function signedFor(market, key) {
  return (await sign(await challengeOf(market.url('/paid/work')), key)).header
}

export const sendPayment = (market, path, header) => read(send(market.url(path), header))

/** @x402/fetch as it comes from the registry: asks, signs what it is asked for, and sends that once. */
export const payStock = (market, path, key) => read(stockFetch(key)(market.url(path)))

export const ask = (market, path, options = {}) => read(fetch(market.url(path), options))

/** Longer than any lease of a dead process. */
const PATIENCE_MS = 60_000

/**
 * Sends the same payment until it is answered or refused: again when there was no answer, or one that says when to
 * come back.
 */
export async function insist(market, path, header) {
  const until = Date.now() + PATIENCE_MS
  for (;;) {
    const answer = await sendPayment(market, path, header)
    const pause = answer.response?.headers.get('retry-after')
    const passing = answer.status === undefined || (answer.status === 503 && pause !== null)
    if (!passing || Date.now() > until) return answer
    await sleep(Math.min(Number(pause ?? 1), 2) * 1000)
  }
}
