import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { parentPort, workerData } from 'node:worker_threads'
import type { Reply, Task } from './message.ts'

/** The database takes whole seconds to open and works on the loop it runs on: it has one of its own. */
const opening = PGlite.create({ dataDir: String(workerData), extensions: { vector } })

parentPort?.on('message', (task: Task) => {
  void replyTo(task).then((reply) => parentPort?.postMessage(reply))
})

async function replyTo({ id, work }: Task): Promise<Reply> {
  try {
    const database = await opening
    switch (work.kind) {
      case 'query': {
        const { rows } = await database.query<Record<string, unknown>>(work.sql, [...work.values])
        return { id, kind: 'rows', rows }
      }
      case 'script':
        // Several statements in one message are one transaction.
        await database.exec(work.script)
        return { id, kind: 'rows', rows: [] }
      case 'close':
        await database.close()
        return { id, kind: 'rows', rows: [] }
    }
  } catch (fault) {
    const code: unknown =
      typeof fault === 'object' && fault !== null && 'code' in fault ? fault.code : undefined
    return {
      id,
      kind: 'fault',
      condition: typeof code === 'string' ? code : undefined,
      reason: fault instanceof Error ? fault.message : String(fault),
    }
  }
}
