import { join } from 'node:path'
import { openLmdbLedger, openRedisLedger, type Ledger } from '../engine/index.ts'
import type { Env } from '../env.ts'

export interface OpenLedger {
  readonly ledger: Ledger
  /** For people: where it is, without credentials. */
  readonly place: string
}

/** The ledger of several machines where REDIS_URL names one, else the embedded one below the data directory. */
export async function openLedger(
  { redisUrl, ledgerUnsafe }: Pick<Env, 'redisUrl' | 'ledgerUnsafe'>,
  dataDir: string,
): Promise<OpenLedger> {
  if (redisUrl === undefined) return openEmbedded(join(dataDir, 'ledger'))
  const settings = ledgerUnsafe ? 'unchecked' : 'checked'
  const ledger = await openRedisLedger({ url: redisUrl, settings })
  return { ledger, place: `redis at ${new URL(redisUrl).host}` }
}

/** A sandbox keeps its own, which belongs to its chains. */
export async function openEmbedded(directory: string): Promise<OpenLedger> {
  return { ledger: await openLmdbLedger(directory), place: `lmdb in ${directory}` }
}
