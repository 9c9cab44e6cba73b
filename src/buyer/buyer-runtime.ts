import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Runtime } from '../engine/base/runtime.ts'

/** Time and randomness. The engine's own runtime would bring the HTTP client of a server. */
export type BuyerRuntime = Pick<Runtime, 'now' | 'random' | 'sleep'>

export const systemRuntime: BuyerRuntime = {
  now: () => Date.now(),
  random: (bytes) => randomBytes(bytes),
  sleep: async (ms) => {
    await delay(ms)
  },
}
