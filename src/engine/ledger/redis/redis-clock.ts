import type { RedisConnection } from './redis-connection.ts'

/** The clock of Redis, advanced by a monotonic local clock. */
export function createClock({ ask }: RedisConnection): {
  readonly now: () => number
  readonly synchronize: () => Promise<void>
} {
  let offset = 0
  return {
    now: () => Math.round(performance.now() + offset),
    synchronize: async () => {
      const before = performance.now()
      const [seconds, micros] = await ask((redis) => redis.time())
      offset = Number(seconds) * 1000 + Number(micros) / 1000 - (before + performance.now()) / 2
    },
  }
}
