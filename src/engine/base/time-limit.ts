import { setMaxListeners } from 'node:events'
import { Failure } from './errors.ts'

/** One error for all calls: creating one, with its stack, costs more than most parts of a call. */
const OVER = new DOMException('the call is over', 'AbortError')

/**
 * Runs work within `ms` milliseconds, with a signal that is aborted when the work has ended. Rejects with
 * `handler_timeout`.
 */
export async function limited<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = openController()
  try {
    // A handler in plain JavaScript may return its answer instead of a promise.
    return await within(ms, Promise.resolve(work(controller.signal)))
  } finally {
    // Nobody waits for the pending requests any more.
    controller.abort(OVER)
  }
}

export function openController(): AbortController {
  const controller = new AbortController()
  // Handlers may ask many sources at once: that is no leak.
  setMaxListeners(0, controller.signal)
  return controller
}

/** Longest delay of a timer: above it, timers fire at once. */
const LONGEST_MS = 2 ** 31 - 1

/** Rejects with `handler_timeout` after `ms` milliseconds, and with the reason of `signal` when that is aborted before. */
export function within<T>(ms: number, work: Promise<T>, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        const seconds = Math.max(1, Math.ceil(ms / 1000))
        const words = seconds === 1 ? 'a second' : `${seconds} seconds`
        reject(new Failure('handler_timeout', `the answer took longer than ${words}`))
      },
      Math.min(ms, LONGEST_MS),
    )
    const stop = (): void => reject(signal?.reason)
    signal?.addEventListener('abort', stop)
    if (signal?.aborted === true) stop()
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    })
  })
}
