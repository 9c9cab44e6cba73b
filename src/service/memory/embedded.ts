import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { entryBeside } from '../threads/thread-pool.ts'
import type { Database } from './database.ts'
import { EmbeddedThread } from './embedded/embedded-thread.ts'

/**
 * PostgreSQL inside this process, with its files below the directory; opened by the first statement, and again after its
 * thread has broken down. It takes no lock of its own, and two processes destroy each other's rows without a word: the
 * caller holds the directory.
 */
export function openEmbedded(directory: string): Database {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const entry = entryBeside(import.meta.url, './embedded/worker')
  let thread: EmbeddedThread | undefined
  const running = (): EmbeddedThread => {
    if (thread === undefined || thread.gone) thread = new EmbeddedThread(entry, join(directory, 'postgres'))
    return thread
  }
  return {
    name: 'embedded',
    query: (sql, values) => running().ask({ kind: 'query', sql, values }),
    run: async (script) => {
      await running().ask({ kind: 'script', script })
    },
    close: async () => {
      await thread?.close()
    },
  }
}
