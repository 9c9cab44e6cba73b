import { join } from 'node:path'
import { LedgerError, readRedisAddress } from '../../engine/index.ts'
import type { Env } from '../../env.ts'
import { openLedger } from '../stores.ts'
import { fails, look, ok, type Verdict } from './verdict.ts'

/** Whether a payment that was taken is still known after a restart. */
export async function judgeStores(env: Env): Promise<Verdict[]> {
  const { redisUrl, cacheRedisUrl, dataDir, ledgerUnsafe } = env
  const cache = cacheRedisUrl === undefined ? undefined : readRedisAddress(cacheRedisUrl, 'CACHE_REDIS_URL')
  return [
    ...(redisUrl === undefined
      ? [
          look(
            'ledger',
            `${join(dataDir, 'ledger')}, on this machine only: REDIS_URL is for several; back it up`,
          ),
        ]
      : await judgeRedis(env)),
    ...(ledgerUnsafe
      ? [look('ledger', 'LEDGER_UNSAFE is set: nobody checks whether Redis keeps what it is told')]
      : []),
    ...(cache !== undefined && 'fault' in cache ? [fails('cache', cache.fault)] : []),
  ]
}

async function judgeRedis(env: Env): Promise<Verdict[]> {
  try {
    const { ledger, title } = await openLedger(env, env.dataDir, undefined)
    await ledger.close()
    return [ok('ledger', `${title}${env.ledgerUnsafe ? '' : ', append-only and without eviction'}`)]
  } catch (fault) {
    if (fault instanceof LedgerError) return [fails('ledger', fault.message)]
    throw fault
  }
}
