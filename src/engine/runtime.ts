import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from './errors.ts'

/** Sends one HTTP request; `fetch` is one. Rejects when there is no response. */
export type RpcTransport = (
  url: string,
  request: {
    readonly method: 'POST'
    readonly headers: Record<string, string>
    readonly body: string
    readonly signal: AbortSignal
  },
) => Promise<{ json(): Promise<unknown> }>

/** Time, randomness and network access, which functions receive as an argument. */
export interface Runtime {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  readonly sleep: (ms: number) => Promise<void>
  /** To facilitators and upstreams. */
  readonly fetcher: typeof fetch
  /** To the nodes of the networks. */
  readonly caller: RpcTransport
}

/** The machine, as the engine sees it. */
export const systemRuntime: Runtime = {
  fetcher: fetch,
  caller: async (url, request) => {
    // A third of the work of the fetch that comes with Node.js, where every payment asks a node five times.
    const undici = await import('undici')
    return (await undici.request(url, request)).body
  },
  now: () => Date.now(),
  random: (bytes) => randomBytes(bytes),
  sleep: async (ms) => {
    await delay(ms)
  },
}

/** One for all calls: to make one, with its stack, costs more than most of what a call does. */
const OVER = new DOMException('the call is over', 'AbortError')

/** Gives the work a signal that ends with it. */
export async function limited<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = openController()
  try {
    // A handler in plain JavaScript may return its answer and no promise of it.
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

/** Creates a value at its first use and keeps it, so that unused values do not slow down the start. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Like `once`, for a function that may fail: a failure is not kept, so the next call tries again. */
export function onceResolved<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make().catch((fault: unknown) => {
      made = undefined
      throw fault
    })
    return made
  }
}

export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** How often a request is repeated: first pause in milliseconds, factor of each further pause. */
export interface Pace {
  readonly first: number
  readonly factor: number
  readonly longest: number
  /** Total time in milliseconds. */
  readonly patience: number
}

/** Repeats a request until it has an answer; undefined when there is none in time. */
export async function poll<T>(
  { now, sleep }: Clock,
  { first, factor, longest, patience }: Pace,
  ask: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const end = now() + patience
  for (let pause = first; now() < end; pause = Math.min(pause * factor, longest)) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await sleep(pause)
  }
  return undefined
}
