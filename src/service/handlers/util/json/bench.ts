import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { Failure } from '../../../../engine/index.ts'

/** A task ran out of time or memory; its thread is gone. */
export const OVERRUN = Symbol('overrun')

/** The main thread reads text only: what a task returns is for the caller to parse. */
type Outcome = string | typeof OVERRUN

/**
 * A thread for work that a caller can make endless: schemas, queries and patterns are small programs. One task at a
 * time; a task that outlives `milliseconds` or the thread's memory is ended together with the thread, and the next one
 * starts a new thread.
 */
export class Bench {
  readonly #entry: URL
  readonly #milliseconds: number
  #worker: Worker | undefined
  #last: Promise<unknown> = Promise.resolve()

  /** `entry` is a module that posts one message when it is ready and then one text for every task. */
  constructor(entry: URL, milliseconds: number) {
    this.#entry = entry
    this.#milliseconds = milliseconds
  }

  /** Fails with `handler_timeout` where the signal was given before the task's turn came. */
  async perform(task: unknown, signal: AbortSignal): Promise<Outcome> {
    const turn = this.#last.then(() => {
      if (signal.aborted) throw new Failure('handler_timeout', 'The request waited too long for its turn')
      return this.#take(task)
    })
    this.#last = turn.catch(() => undefined)
    return turn
  }

  async #take(task: unknown): Promise<Outcome> {
    const worker = await this.#ready()
    worker.ref()
    const outcome = await run(worker, task, this.#milliseconds)
    if (outcome === OVERRUN) await worker.terminate()
    else worker.unref()
    return outcome
  }

  /** The running thread, or a new one where there is none yet or the last one has ended. */
  async #ready(): Promise<Worker> {
    if (this.#worker === undefined) {
      const worker = await start(this.#entry)
      worker.on('exit', () => {
        this.#worker = undefined
      })
      this.#worker = worker
    }
    return this.#worker
  }
}

async function start(entry: URL): Promise<Worker> {
  const worker = new Worker(entry, {
    resourceLimits: { maxOldGenerationSizeMb: 128 },
  })
  await once(worker, 'message')
  // an idle thread must not keep the process alive, and its end between two tasks is no news
  worker.on('error', () => undefined)
  worker.unref()
  return worker
}

function run(worker: Worker, task: unknown, milliseconds: number): Promise<Outcome> {
  return new Promise((settle) => {
    const end = (outcome: Outcome): void => {
      clearTimeout(timer)
      worker.off('message', answer).off('exit', overrun)
      settle(outcome)
    }
    const answer = (text: string): void => end(text)
    const overrun = (): void => end(OVERRUN)
    const timer = setTimeout(overrun, milliseconds)
    worker.on('message', answer).on('exit', overrun)
    worker.postMessage(task)
  })
}
