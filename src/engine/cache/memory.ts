import { LRUCache } from 'lru-cache'
import type { Answer } from '../handler.ts'
import type { CacheStore, Fetched } from './cache.ts'

/** Characters of answers kept in the process; the least recently used go first. */
const LARGEST = 64 * 1024 * 1024
/** One that is larger is not kept: it would push out all the others. */
const LARGEST_ANSWER = LARGEST / 16

interface Kept {
  /** As text, so that nobody who gets the answer can change it for the next one. */
  readonly answer: string
  readonly at: number
}

/** Keeps answers in this process only. */
export function createMemoryCache(): CacheStore {
  const entries = new LRUCache<string, Kept>({
    maxSize: LARGEST,
    maxEntrySize: LARGEST_ANSWER,
    sizeCalculation: ({ answer }, key) => key.length + answer.length,
  })
  return {
    name: 'in-process',
    get: async (key) => {
      const kept = entries.get(key)
      if (kept === undefined) return undefined
      const answer: Answer = JSON.parse(kept.answer)
      return { answer, at: kept.at }
    },
    set: async (key, { answer, at }: Fetched, keepMs) => {
      entries.set(key, { answer: JSON.stringify(answer), at }, { ttl: keepMs })
    },
    close: async () => entries.clear(),
  }
}
