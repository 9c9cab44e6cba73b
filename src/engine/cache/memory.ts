import { LRUCache } from 'lru-cache'
import type { CacheStore, Fetched } from './cache.ts'

/** Bytes of answers kept in the process; the least recently used go first. */
const LARGEST = 64 * 1024 * 1024

/** Keeps answers in this process only. */
export function createMemoryCache(): CacheStore {
  const entries = new LRUCache<string, Fetched>({
    maxSize: LARGEST,
    sizeCalculation: (fetched, key) => key.length + JSON.stringify(fetched).length,
  })
  return {
    name: 'in-process',
    get: async (key) => entries.get(key),
    set: async (key, fetched, keepMs) => {
      entries.set(key, fetched, { ttl: keepMs })
    },
    close: async () => entries.clear(),
  }
}
