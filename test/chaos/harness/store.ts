import { join } from 'node:path'
import type { Ledger } from '../../../src/engine/ledger/ledger.ts'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { openRedisLedger } from '../../../src/engine/ledger/redis/redis-ledger.ts'
import { startRedis } from '../../support/redis.ts'

/** The store of the ledger that the processes share. */
export interface Store {
  /** Environment variables that lead a process to it. */
  readonly env: Readonly<Record<string, string>>
  /** Opens the ledger in it for the test. */
  open(): Promise<Ledger>
  /** Kills it and starts it again; undefined for a store that is not a process. */
  readonly kill: (() => Promise<void>) | undefined
  close(): Promise<void>
}

export type StoreName = 'lmdb' | 'redis'

export async function openStore(name: StoreName, dataDir: string): Promise<Store> {
  switch (name) {
    case 'lmdb':
      return {
        env: {},
        open: () => openLmdbLedger(join(dataDir, 'ledger')),
        kill: undefined,
        close: async () => {},
      }
    case 'redis': {
      const redis = await startRedis()
      return {
        env: { REDIS_URL: redis.url },
        open: () => openRedisLedger({ url: redis.url, settings: 'checked', replicas: 0 }),
        kill: async () => {
          await redis.kill()
          await redis.restart()
        },
        close: () => redis.stop(),
      }
    }
  }
}
