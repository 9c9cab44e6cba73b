import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** Times its limit of CPU time that a task may take on the clock. */
const LONGEST = 5

/** A task ran out of time or memory; its thread is gone. */
export const LIMIT_EXCEEDED = Symbol('limit exceeded')

export interface ThreadLimits {
  /**
   * For one task: CPU time of the process while the task runs, so that a busy machine refuses nothing that an idle one
   * answers. On the clock at most `LONGEST` times as long.
   */
  readonly milliseconds: number
  /** Of JavaScript values; a task that needs more ends its thread, not the process. */
  readonly megabytes: number
}

/**
 * One thread for one task at a time. A task that outlives its limits is ended together with the thread, and the next
 * one starts a new thread.
 */
export class Thread {
  readonly #entry: URL
  readonly #limits: ThreadLimits
  #worker: Worker | undefined

  /** `entry` is a module that calls `serveWorker`. */
  constructor(entry: URL, limits: ThreadLimits) {
    this.#entry = entry
    this.#limits = limits
  }

  async perform(task: unknown): Promise<string | typeof LIMIT_EXCEEDED> {
    const worker = this.#worker ?? (await this.#start())
    worker.ref()
    const outcome = await run(worker, task, this.#limits.milliseconds)
    if (outcome === LIMIT_EXCEEDED) await worker.terminate()
    else worker.unref()
    return outcome
  }

  async #start(): Promise<Worker> {
    const resourceLimits = { maxOldGenerationSizeMb: this.#limits.megabytes }
    const worker = new Worker(this.#entry, { resourceLimits })
    await once(worker, 'message')
    // An idle thread must not keep the process alive, and its end between two tasks is no news.
    worker.on('error', () => undefined)
    worker.on('exit', () => {
      this.#worker = undefined
    })
    worker.unref()
    this.#worker = worker
    return worker
  }
}

function run(worker: Worker, task: unknown, milliseconds: number): Promise<string | typeof LIMIT_EXCEEDED> {
  return new Promise((settle) => {
    const end = (outcome: string | typeof LIMIT_EXCEEDED): void => {
      clearTimeout(timer)
      worker.off('message', answer).off('exit', stop)
      settle(outcome)
    }
    const answer = (text: string): void => end(text)
    const stop = (): void => end(LIMIT_EXCEEDED)
    const begun = performance.now()
    const spent = process.cpuUsage()
    // The process spends at least what its thread does.
    const stopWhenSpent = (): void => {
      const { user, system } = process.cpuUsage(spent)
      const left = Math.min(
        milliseconds - (user + system) / 1000,
        milliseconds * LONGEST - (performance.now() - begun),
      )
      if (left <= 0) stop()
      else timer = setTimeout(stopWhenSpent, left)
    }
    let timer = setTimeout(stopWhenSpent, milliseconds)
    worker.on('message', answer).on('exit', stop)
    worker.postMessage(task)
  })
}
