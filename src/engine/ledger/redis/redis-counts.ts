import type { DayCounts } from '../daily-counts.ts'
import type { Ledger } from '../ledger.ts'
import { datesBetween } from '../sales-totals.ts'
import { addCounts, KEYS } from './redis-scripts.ts'
import type { RedisStore } from './redis-store.ts'

export function openRedisCounts({ ask, once }: Pick<RedisStore, 'ask' | 'once'>): Ledger['counts'] {
  return {
    add: async (date, counts) => {
      await once((identity) => addCounts(identity, date, counts))
    },
    read: (from, to) =>
      Promise.all(
        datesBetween(from, to).map(async (date): Promise<DayCounts> => {
          const fields = await ask((redis) => redis.hgetall(KEYS.counts(date)))
          return {
            date,
            counts: new Map(Object.entries(fields).map(([field, count]) => [field, Number(count)])),
          }
        }),
      ),
  }
}
