import { join } from 'node:path'
import {
  type CacheStore,
  createMemoryCache,
  type Ledger,
  openLmdbLedger,
  openRedisCache,
  openRedisLedger,
  readRedisAddress,
} from '../engine/index.ts'
import type { Env } from '../env.ts'
import { world } from './compose.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'

interface OpenedLedger {
  readonly ledger: Ledger
  /** For people: what it is and, of a Redis, where. */
  readonly title: string
}

/** Play money stays on this machine; payments go to Redis as soon as there is one. Throws `LedgerError`. */
export async function openLedger(
  { redisUrl, ledgerUnsafe, ledgerReplicas }: Pick<Env, 'redisUrl' | 'ledgerUnsafe' | 'ledgerReplicas'>,
  dataDir: string,
  sandbox: Pick<Sandbox, 'ledgerDirectory'> | undefined,
): Promise<OpenedLedger> {
  if (redisUrl !== undefined && sandbox === undefined) {
    const settings = ledgerUnsafe ? 'unchecked' : 'checked'
    const ledger = await openRedisLedger({ url: redisUrl, settings, replicas: ledgerReplicas })
    return { ledger, title: `${ledger.name} at ${new URL(redisUrl).host}` }
  }
  const ledger = await openLmdbLedger(sandbox?.ledgerDirectory ?? join(dataDir, 'ledger'))
  return { ledger, title: ledger.name }
}

interface OpenedCache {
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
