import { Worker } from 'node:worker_threads'
import { DatabaseError, type Row } from '../database.ts'
import type { Reply, Work } from './message.ts'

interface Waiting {
  readonly settle: (rows: readonly Row[]) => void
  readonly fail: (fault: unknown) => void
}

/** The thread of one embedded database: what it is asked before it has opened waits for that. */
export class EmbeddedThread {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #last = 0
  #fault: DatabaseError | undefined

  constructor(entry: URL, directory: string) {
    this.#worker = new Worker(entry, { workerData: directory })
    // What waits for an answer keeps the process alive, an open database does not.
    this.#worker.unref()
    this.#worker.on('message', (reply: Reply) => this.#take(reply))
    this.#worker.on('error', (fault) => this.#end(fault))
    this.#worker.on('exit', (code) => this.#end(new Error(`the thread has ended with ${code}`)))
  }

  get gone(): boolean {
    return this.#fault !== undefined
  }

  /** In the order of the calls. */
  ask(work: Work): Promise<readonly Row[]> {
    return new Promise((settle, fail) => {
      if (this.#fault !== undefined) return fail(this.#fault)
      this.#last += 1
      this.#waiting.set(this.#last, { settle, fail })
      this.#worker.ref()
      this.#worker.postMessage({ id: this.#last, work })
    })
  }

  async close(): Promise<void> {
    if (!this.gone) await this.ask({ kind: 'close' })
    await this.#worker.terminate()
  }

  #take(reply: Reply): void {
    const asked = this.#waiting.get(reply.id)
    this.#waiting.delete(reply.id)
    if (this.#waiting.size === 0) this.#worker.unref()
    if (reply.kind === 'rows') asked?.settle(reply.rows)
    else asked?.fail(new DatabaseError(reply.condition, new Error(reply.reason)))
  }

  #end(reason: unknown): void {
    this.#fault ??= new DatabaseError(undefined, reason)
    for (const { fail } of this.#waiting.values()) fail(this.#fault)
    this.#waiting.clear()
  }
}
