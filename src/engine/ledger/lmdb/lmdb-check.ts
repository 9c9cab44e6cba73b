import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { damaged } from './lmdb-file.ts'

/** A million payments take minutes. LMDB may also read a damaged store without end. */
const CHECKED_WITHIN_MS = 1_800_000

/**
 * Reads a store completely, in a process of its own: LMDB has no checksums, and a damaged page can end the process that
 * reads it with a signal, or hide payments. Rejects with `LedgerError` when the store is damaged. A server may use the
 * store meanwhile.
 */
export async function checkStore(directory: string): Promise<void> {
  if (!existsSync(join(directory, 'data.mdb'))) return
  const program = fileURLToPath(new URL(`./lmdb-check-process${extname(import.meta.url)}`, import.meta.url))
  const child = fork(program, [directory], {
    execArgv: process.execArgv.filter((option) => !option.startsWith('--inspect')),
    stdio: 'ignore',
    timeout: CHECKED_WITHIN_MS,
    killSignal: 'SIGKILL',
  })
  let reason: string | undefined
  child.on('message', (message) => {
    if (typeof message === 'string') reason = message
  })
  const [, signal] = await once(child, 'exit')
  reason ??= typeof signal === 'string' ? `reading it ends with ${signal}` : undefined
  if (reason !== undefined) throw damaged(directory, reason)
}
