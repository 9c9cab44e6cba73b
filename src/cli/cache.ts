import { createMemoryCache, openRedisCache, readRedisAddress, type CacheStore } from '../engine/index.ts'
import type { Env } from '../env.ts'
import { world } from './assemble.ts'

export interface OpenedCache {
  readonly store: CacheStore
  /** For people: what it is and, of a Redis, where. */
  readonly title: string
}

/**
 * Shared as soon as there is a Redis, but never by the sandbox: what stand-ins say is not for those who pay. A fault is a
 * mistake in the address; a Redis that cannot be reached is none, for an answer can be fetched without it.
 */
export async function openCache(
  { cacheRedisUrl, redisUrl }: Pick<Env, 'cacheRedisUrl' | 'redisUrl'>,
  payments: 'sandbox' | 'real',
  report: (line: string) => void,
): Promise<OpenedCache | { readonly fault: string }> {
  if (payments === 'sandbox') return { store: createMemoryCache(), title: 'in-process' }
  const url = cacheRedisUrl ?? redisUrl
  if (url === undefined) return { store: createMemoryCache(), title: 'in-process (set REDIS_URL to share)' }
  const variable = cacheRedisUrl === undefined ? 'REDIS_URL' : 'CACHE_REDIS_URL'
  const address = readRedisAddress(url, variable)
  if ('fault' in address) return address
  const store = await openRedisCache({ address, random: world.random, report })
  return { store, title: `${store.name} at ${address.place}` }
}
