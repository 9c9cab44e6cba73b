import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Outcome, Task } from './worker.ts'

/** The lists and their indexes take up to a few hundred megabytes. */
const LIMITS = { maxOldGenerationSizeMb: 1536 }

interface Waiting {
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (fault: Error) => void
}

/**
 * The thread that holds the lists. It starts with the first task and keeps the process alive only while it is at work.
 * When it ends, what is under way fails and the next task starts another, which holds nothing.
 */
export class ListThread {
  readonly #waiting = new Map<number, Waiting>()
  readonly #onEnd: () => void
  #worker: Worker | undefined
  #last = 0

  /** `onEnd` is told that all lists are gone. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  perform(task: Task): Promise<Outcome> {
    const worker = (this.#worker ??= this.#start())
    const id = ++this.#last
    worker.ref()
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      worker.postMessage({ id, task })
    })
  }

  /** Ends the thread and gives its memory back. */
  async end(): Promise<void> {
    await this.#worker?.terminate()
  }

  #start(): Worker {
    // The entry is `.ts` among the sources and `.js` once they are built.
    const worker = new Worker(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), {
      resourceLimits: LIMITS,
    })
    worker.on('message', ({ id, outcome }: { readonly id: number; readonly outcome: Outcome }) => {
      this.#waiting.get(id)?.resolve(outcome)
      this.#waiting.delete(id)
      if (this.#waiting.size === 0) worker.unref()
    })
    let cause: unknown
    worker.on('error', (fault) => {
      cause = fault
    })
    worker.on('exit', () => {
      this.#worker = undefined
      for (const { reject } of this.#waiting.values())
        reject(new Error('the thread of the lists has ended', { cause }))
      this.#waiting.clear()
      this.#onEnd()
    })
    return worker
  }
}
