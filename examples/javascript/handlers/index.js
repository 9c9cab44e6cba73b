import { setTimeout as delay } from 'node:timers/promises'

const source = [{ name: 'computed' }]

async function convert({ number, base }) {
  return { source, body: { number, base, digits: number.toString(base) } }
}

async function coins({ tosses }, { random }) {
  const results = Array.from(random(tosses), (byte) => (byte < 128 ? 'heads' : 'tails'))
  return { source, body: { tosses, results } }
}

async function countdown({ from }, { signal }) {
  return { content: { type: 'text/event-stream', stream: count(from, signal) } }
}

async function* count(from, signal) {
  for (let left = from; left > 0; left -= 1) {
    yield `data: ${left}\n\n`
    await delay(1_000, undefined, { signal })
  }
  yield 'event: end\ndata: 0\n\n'
}

export const handlers = { convert, coins, countdown }
