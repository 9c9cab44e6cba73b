import { randomBytes } from 'node:crypto'
import { type ClientRequest, request as requestByHttp, type RequestOptions } from 'node:http'
import { request as requestByHttps } from 'node:https'
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

/** Begins an HTTP request, whose method, path and headers are sent as they are given. */
export type OpenRequest = (url: URL, options: RequestOptions) => ClientRequest

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
  /** To the site behind a passthrough. */
  readonly openRequest: OpenRequest
}

/** The machine, as the engine sees it. */
export const systemRuntime: Runtime = {
  fetcher: fetch,
  caller: async (url, request) => {
    // A third of the work of the fetch that comes with Node.js, where every payment asks a node five times.
    const undici = await import('undici')
    return (await undici.request(url, request)).body
  },
  openRequest: (url, options) => {
    const request = url.protocol === 'https:' ? requestByHttps : requestByHttp
    // A connection that is kept may be closed by the other side just when it is used again.
    return request(url, { ...options, agent: false })
  },
  now: () => Date.now(),
  random: (bytes) => randomBytes(bytes),
  sleep: async (ms) => {
    await delay(ms)
  },
}
