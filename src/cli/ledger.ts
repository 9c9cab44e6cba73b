import { join } from 'node:path'
import { openLmdbLedger, openRedisLedger, type Ledger } from '../engine/index.ts'
import type { Env } from '../env.ts'
import type { Sandbox } from './command.ts'

export interface OpenedLedger {
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
