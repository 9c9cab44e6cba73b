import { nextTick } from 'node:process'
import { setImmediate } from 'node:timers'
import type { Middleware } from 'koa'

/** How long new requests are begun in one turn of the event loop, in milliseconds. */
const TURN_MS = 10

/**
 * Spreads requests that arrive in the same moment over several turns of the event loop, in their order. A thousand payments
 * would otherwise be checked in one turn, and answers, timers and commits would wait for all of them.
 */
export function requestTurns(): Middleware {
  /** When the first request of this turn began; undefined before it. */
  let began: number | undefined
  let waiting: (() => void)[] = []
  const hasTime = (): boolean => {
    const now = performance.now()
    if (began === undefined) {
      began = now
      setImmediate(() => void endTurn())
    }
    return now - began < TURN_MS
  }
  const endTurn = async (): Promise<void> => {
    began = undefined
    const next = waiting
    waiting = []
    let place = 0
    for (; place < next.length && hasTime(); place += 1) {
      next[place]?.()
      await microtasks()
    }
    waiting = [...next.slice(place), ...waiting]
  }
  return (_ctx, begin) =>
    waiting.length === 0 && hasTime()
      ? begin()
      : new Promise((resolve) => waiting.push(() => resolve(begin())))
}

/** Resolves when all that a request does without waiting is done: Node.js ends its microtasks before the next tick. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve))
}
