import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Every, systemEvery } from './every.ts'

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

/** Makes a signal that is aborted after so many milliseconds. */
export type Deadline = (ms: number) => AbortSignal

/** Time, randomness and network access, which functions receive as an argument. */
export interface Runtime {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  readonly sleep: (ms: number) => Promise<void>
  readonly every: Every
  readonly deadline: Deadline
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
  every: systemEvery,
  deadline: (ms) => AbortSignal.timeout(ms),
}
