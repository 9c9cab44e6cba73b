import { createMemoryCache, type CacheStore } from '../cache/cache.ts'
import { openRedisCache } from '../cache/redis.ts'
import { readRedisAddress } from '../base/redis-address.ts'
import { systemRuntime } from '../base/runtime.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openLmdbLedger } from '../ledger/lmdb/lmdb-ledger.ts'
import { openRedisLedger } from '../ledger/redis/redis-ledger.ts'

export interface LedgerPlace {
  /** Folder of an LMDB store, when no Redis is set. */
  readonly directory: string
  readonly redisUrl?: string | undefined
  /** The operator accepts Redis settings that cannot be read. */
  readonly ledgerUnsafe?: boolean
  /** Replicas of Redis that must confirm a change before it counts as stored. */
  readonly ledgerReplicas?: number
}

interface OpenedLedger {
  readonly ledger: Ledger
  /** For people: the kind of store, and the address of a Redis. */
  readonly title: string
}

/** Throws `LedgerError`. */
export async function openLedger({
  directory,
  redisUrl,
  ledgerUnsafe = false,
  ledgerReplicas = 0,
}: LedgerPlace): Promise<OpenedLedger> {
  if (redisUrl === undefined) {
    const ledger = await openLmdbLedger(directory)
    return { ledger, title: ledger.name }
  }
  const settings = ledgerUnsafe ? 'unchecked' : 'checked'
  const ledger = await openRedisLedger({ url: redisUrl, settings, replicas: ledgerReplicas })
  return { ledger, title: `${ledger.name} at ${new URL(redisUrl).host}` }
}

interface OpenedCache {
  readonly store: CacheStore
  /** For people: the kind of store, and the address of a Redis. */
  readonly title: string
}

/**
 * Opens a cache in this process or in a Redis; `setting` names the variable of its URL. Throws for an invalid URL
 * only: without a reachable Redis, answers are fetched instead.
 */
export async function openCache(
  url: string | undefined,
  setting: string,
  report: (line: string) => void,
): Promise<OpenedCache | { readonly fault: string }> {
  if (url === undefined) return { store: createMemoryCache(), title: 'in-process' }
  const address = readRedisAddress(url, setting)
  if ('fault' in address) return address
  const store = await openRedisCache({ address, random: systemRuntime.random, report })
  return { store, title: `${store.name} at ${address.place}` }
}
