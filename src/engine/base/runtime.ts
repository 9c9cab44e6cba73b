import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

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

/** Sends one HTTP request, once, and follows no redirect. Rejects when there is no response. */
export type HttpTransport = (
  url: string,
  request: {
    readonly method: 'GET' | 'POST'
    readonly headers: Record<string, string>
    readonly body: string | undefined
    readonly signal: AbortSignal
  },
) => Promise<HttpResponse>

export interface HttpResponse {
  readonly status: number
  /** The value of a header that is sent at most once, by its name in small letters. */
  readonly header: (name: string) => string | undefined
  readonly body: AsyncIterable<Uint8Array>
}

/** Time, randomness and network access, which functions receive as an argument. */
export interface Runtime {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  readonly sleep: (ms: number) => Promise<void>
  /** Sends requests to upstreams. */
  readonly fetcher: typeof fetch
  /** Sends requests to facilitators. */
  readonly http: HttpTransport
  /** Sends requests to the nodes of the networks. */
  readonly caller: RpcTransport
}

/** The machine, as the engine sees it. */
export const systemRuntime: Runtime = {
  fetcher: fetch,
  http: async (url, { body, ...request }) => {
    const undici = await import('undici')
    const response = await undici.request(url, { ...request, body: body ?? null })
    return {
      status: response.statusCode,
      header: (name) => {
        const value = response.headers[name]
        return typeof value === 'string' ? value : undefined
      },
      body: response.body,
    }
  },
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

/** Requests by a `fetch` that a program brings along. */
export function httpOver(fetcher: typeof fetch): HttpTransport {
  return async (url, { body, ...request }) => {
    const response = await fetcher(url, { ...request, body: body ?? null, redirect: 'manual' })
    return {
      status: response.status,
      header: (name) => response.headers.get(name) ?? undefined,
      body: response.body ?? emptyBody(),
    }
  }
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}
