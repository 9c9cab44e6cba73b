import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Ledger } from '../../engine/index.ts'
import type { Call } from '../command.ts'
import { openLedger } from '../ledger.ts'

/** Flags that say whose payments are meant. */
export const BOOKS = { 'data-dir': { type: 'string' }, sandbox: { type: 'boolean' } } as const

export function dataDirOf({ flags, env }: Call): string {
  return flags.text('data-dir') ?? env.dataDir
}

/**
 * Opens the ledger that a server of this environment keeps, beside that server if it runs.
 * Throws when there is none: a new one would answer a mistyped directory with "no payments".
 */
export async function openBooks(call: Call): Promise<Ledger> {
  const { flags, env } = call
  const directory = dataDirOf(call)
  const sandbox = join(directory, 'sandbox', 'ledger')
  if (flags.given('sandbox')) {
    if (!isLedger(sandbox)) throw new Error(`there is no ledger of a sandbox in ${sandbox}`)
    return (await openLedger(env, directory, { ledgerDirectory: sandbox })).ledger
  }
  const own = join(directory, 'ledger')
  if (env.redisUrl === undefined && !isLedger(own)) {
    const hint = isLedger(sandbox) ? 'a sandbox has one: add --sandbox' : 'name the server’s with --data-dir'
    throw new Error(`there is no ledger in ${own}; ${hint}`)
  }
  return (await openLedger(env, directory, undefined)).ledger
}

function isLedger(directory: string): boolean {
  return existsSync(join(directory, 'data.mdb'))
}
