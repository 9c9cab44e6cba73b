import { extname } from 'node:path'
import { Failure, InvalidParameter } from 'ratecard/handler'
import type { Reply } from './thread-reply.ts'
import { LIMIT_EXCEEDED, Thread, type ThreadLimits } from './thread.ts'

export interface PoolOptions extends ThreadLimits {
  /** How many tasks may run at once; a thread is started when one is first needed. */
  readonly threads: number
}

/**
 * Threads for work that a caller can make endless: pages, schemas, queries and patterns are small programs. The event
 * loop goes on meanwhile, and whatever a task does, it ends within its limits.
 *
 * @example
 * const pool = new ThreadPool<Task, Result>(entryBeside(import.meta.url, './worker'), { threads: 2, milliseconds: 1000, megabytes: 128 })
 * const result = await pool.perform(task, context.signal)
 * if (result === LIMIT_EXCEEDED) throw new InvalidParameter('data', 'data is too complex')
 */
export class ThreadPool<Task, Result> {
  readonly #idle: Thread[]
  readonly #waiting = new Set<(thread: Thread) => void>()

  constructor(entry: URL, { threads, ...limits }: PoolOptions) {
    this.#idle = Array.from({ length: threads }, () => new Thread(entry, limits))
  }

  /**
   * The result, once a thread is free: tasks wait in the order they came. Throws what the task throws, and
   * `handler_timeout` when the signal is given before its turn.
   */
  async perform(task: Task, signal: AbortSignal): Promise<Result | typeof LIMIT_EXCEEDED> {
    const thread = await this.#turn(signal)
    try {
      const outcome = await thread.perform(task)
      return outcome === LIMIT_EXCEEDED ? LIMIT_EXCEEDED : judge<Result>(outcome)
    } finally {
      const [next] = this.#waiting
      if (next === undefined) this.#idle.push(thread)
      else {
        this.#waiting.delete(next)
        next(thread)
      }
    }
  }

  #turn(signal: AbortSignal): Promise<Thread> {
    const late = (): Failure => new Failure('handler_timeout', 'The request waited too long for its turn')
    if (signal.aborted) return Promise.reject(late())
    // The last to be used is warm.
    const free = this.#idle.pop()
    if (free !== undefined) return Promise.resolve(free)
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(take)
        reject(late())
      }
      const take = (thread: Thread): void => {
        signal.removeEventListener('abort', giveUp)
        resolve(thread)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.add(take)
    })
  }
}

/** The module of a thread, next to the one that starts it: `.ts` among the sources, `.js` once they are built. */
export function entryBeside(url: string, path: string): URL {
  return new URL(`${path}${extname(url)}`, url)
}

function judge<Result>(text: string): Result | typeof LIMIT_EXCEEDED {
  const reply: Reply<Result> = JSON.parse(text)
  switch (reply.kind) {
    case 'performed':
      return reply.result
    case 'invalid':
      throw new InvalidParameter(reply.parameter, reply.sentence, reply.ctx)
    case 'failed':
      throw new Failure(reply.code, reply.detail)
    case 'exhausted':
      return LIMIT_EXCEEDED
    case 'broken':
      throw new Failure('internal', 'The operation failed unexpectedly', { cause: new Error(reply.reason) })
  }
}
