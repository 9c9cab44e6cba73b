import { randomBytes } from 'node:crypto'
import { type ClientRequest, request as requestByHttp, type RequestOptions } from 'node:http'
import { request as requestByHttps } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { type Every, systemEvery } from './every.ts'
import type { Tracing } from './tracing.ts'

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

/** Begins an HTTP request, whose method, path and headers are sent as they are given. */
export type OpenRequest = (url: URL, options: RequestOptions) => ClientRequest

/** Time, randomness and network access, which functions receive as an argument. */
export interface Runtime {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  readonly sleep: (ms: number) => Promise<void>
  readonly every: Every
  readonly deadline: Deadline
  /** Sends requests to upstreams. */
  readonly fetcher: typeof fetch
  /** Sends requests to facilitators. */
  readonly http: HttpTransport
  /** Sends requests to the nodes of the networks. */
  readonly caller: RpcTransport
  /** Begins requests to the site behind a passthrough. */
  readonly openRequest: OpenRequest
  /** Undefined while nobody looks. */
  readonly tracing?: Tracing | undefined
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
  every: systemEvery,
  deadline: (ms) => AbortSignal.timeout(ms),
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
