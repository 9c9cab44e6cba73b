import { LRUCache } from 'lru-cache'
import { MemoryBudget } from './budget.ts'
import { UNDISPUTED, type CacheStore, type Fetched } from './cache.ts'

/** Characters of values kept in the process; the least recently used go first. */
const LARGEST = 64 * 1024 * 1024
/** One that is larger is not kept: it would push out all the others. */
const LARGEST_VALUE = LARGEST / 16

interface Kept {
  /** As text, so that nobody who gets the value can change it for the next one. */
  readonly json: string
  readonly moment: Omit<Fetched<unknown>, 'value'>
}

/** Keeps values in this process only. */
export function createMemoryCache(): CacheStore {
  const budget = new MemoryBudget(() => performance.now())
  const entries = new LRUCache<string, Kept>({
    maxSize: LARGEST,
    maxEntrySize: LARGEST_VALUE,
    sizeCalculation: ({ json }, key) => key.length + json.length,
  })
  return {
    name: 'in-process',
    get: async (key) => {
      const kept = entries.get(key)
      return kept === undefined ? undefined : { value: JSON.parse(kept.json), ...kept.moment }
    },
    set: async (key, { value, ...moment }, keepMs) => {
      entries.set(key, { json: JSON.stringify(value), moment }, { ttl: keepMs })
    },
    claim: async () => UNDISPUTED,
    spend: async (client, rate) => budget.spend(client, rate),
    close: async () => entries.clear(),
  }
}
