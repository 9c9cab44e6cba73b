import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Context } from 'koa'
import type { ValidationError } from '../catalog/validation-error.ts'
import { ERRORS, type Charged, type ErrorCode, type Failure } from '../errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../json.ts'
import type { LeaseContext } from '../ledger/lease.ts'
import type { StoredAnswer, PaymentRecord } from '../ledger/payment-record.ts'
import type { Micros } from '../money.ts'
import { problemMembers, markReceived, markUndelivered, type ConnectedBuyers } from '../purchase/request.ts'

/** What a line says besides method, status and time; kept in `ctx.state`. */
export interface Notes {
  readonly place?: string
  readonly price?: Micros | undefined
  readonly code?: ErrorCode | undefined
  readonly cached?: boolean | undefined
  /** The calls inside the request have lines of their own. */
  readonly logged?: boolean
}

export function note(ctx: Context, notes: Notes): void {
  Object.assign(ctx.state, notes)
}

/** What is sent for one request. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
  /** Names of request headers that the answer depends on. */
  readonly vary?: string
  /** Why it is no answer. */
  readonly code?: ErrorCode
  /** Whether the answer came from the cache, where it says so. */
  readonly cached?: boolean
}

export function respond(ctx: Context, { status, headers, body, vary, code, cached }: Reply): void {
  note(ctx, { code, cached })
  ctx.status = status
  ctx.set(headers)
  if (vary !== undefined) {
    // Parses the names on both sides, which takes time.
    if (ctx.response.get('Vary')) ctx.vary(vary)
    else ctx.set('Vary', vary)
  }
  ctx.body = body
}

export const JSON_TYPE = 'application/json; charset=utf-8'
export const PROBLEM_TYPE = 'application/problem+json'

export interface ProblemOptions {
  readonly charged: Charged
  readonly headers?: Readonly<Record<string, string>>
  readonly extra?: JsonObject
}

/** RFC 9457 problem with the service's own members: what happened, what was charged, what to do. */
export function problem(code: ErrorCode, detail: string, options: ProblemOptions): Reply {
  const { status } = ERRORS[code]
  const body = { ...problemMembers(code, detail, options.charged), ...options.extra }
  return {
    status,
    headers: { 'Content-Type': PROBLEM_TYPE, 'Cache-Control': 'no-store', ...options.headers },
    body: JSON.stringify(body),
    code,
  }
}

/** A failure of the work: its own status and words, never anything of an unknown error. */
export function failed(failure: Failure, charged: Charged): Reply {
  const { code, detail, extra, retryAfter } = failure
  const headers =
    retryAfter === undefined ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(retryAfter))) }
  return problem(code, detail, { charged, extra, headers })
}

/** 422 in the shape of the specification's HTTPValidationError. */
export function invalid(errors: readonly ValidationError[], charged: Charged = 'no'): Reply {
  return {
    status: 422,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify({ detail: errors, charged }),
    code: 'parameters_invalid',
  }
}

/** Nobody knows what stands in it: a browser must neither guess its type nor run it as a page of this service. */
const INERT = { 'X-Content-Type-Options': 'nosniff', 'Content-Security-Policy': 'sandbox' }

/** An answer in the form it is stored in. */
export function ok(stored: StoredAnswer, headers: Readonly<Record<string, string>>): Reply {
  if (stored.kind === 'text')
    return {
      status: 200,
      headers: { 'Content-Type': stored.type, ...stored.headers, ...headers },
      body: stored.text,
    }
  if (stored.kind === 'bytes')
    return {
      status: 200,
      headers: { 'Content-Type': stored.type, ...INERT, ...stored.headers, ...headers },
      body: Buffer.from(stored.bytes),
    }
  const { cached }: { readonly cached?: Json } = isJsonObject(stored.value) ? stored.value : {}
  return {
    status: 200,
    headers: { 'Content-Type': JSON_TYPE, ...headers },
    body: JSON.stringify(stored.value),
    ...(typeof cached === 'boolean' ? { cached } : {}),
  }
}

/** Work that uses the ledger, whether or not anybody still waits for it: the ledger is closed after it. */
export class BackgroundTasks {
  readonly #work = new Set<Promise<unknown>>()
  readonly #later = new Set<NodeJS.Timeout>()
  #ended = false

  /** Counts the work in; gives it back as it is. */
  add<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work)
    const counted = work.finally(() => this.#work.delete(work))
    // Its failure goes to the request that waits for the work.
    counted.catch(() => undefined)
    return work
  }

  /** Begins the work after `ms` milliseconds, unless everything ends before. */
  later(ms: number, begin: () => Promise<unknown>): void {
    const timer = setTimeout(() => {
      this.#later.delete(timer)
      void this.add(begin())
    }, ms)
    timer.unref()
    this.#later.add(timer)
  }

  /** Begins the work every `ms` milliseconds, but never beside itself, until everything ends. */
  every(ms: number, begin: () => Promise<unknown>): void {
    this.later(ms, async () => {
      await begin().finally(() => {
        if (!this.#ended) this.every(ms, begin)
      })
    })
  }

  /** What is waiting is given up; resolves when what has begun is over, well or not. */
  async end(): Promise<void> {
    this.#ended = true
    for (const timer of this.#later) clearTimeout(timer)
    this.#later.clear()
    await Promise.allSettled(this.#work)
  }
}

/** Aborted when the connection is gone before the answer has left. */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.closed) gone.abort()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  return gone.signal
}

/** This long after the last byte without a reset, the buyer has the answer. */
const DELIVERED_MS = 2_000
/**
 * A proxy takes the answer whether or not the buyer does, and shares its connections between buyers. Until this long
 * after the last byte, a buyer who pays for the same again is taken for one whose answer was lost.
 */
const DELIVERED_BY_PROXY_MS = 30_000

export interface DeliverySettings {
  readonly desk: LeaseContext
  readonly tasks: BackgroundTasks
  readonly buyers: ConnectedBuyers
  /** Whether buyers are connected to a proxy, and not to this process. */
  readonly trustProxy: boolean
  readonly report: (fault: unknown) => void
}

/** Watches paid answers on their way to the buyers. */
export class Deliveries {
  readonly #settings: DeliverySettings
  /** Answers that are not known to have arrived. One response may hold several: MCP once knew batches. */
  readonly #onTheirWay = new WeakMap<Socket | ServerResponse, Set<PaymentRecord>>()

  /** Confirmed by the next request on their connection. */
  readonly #received = new WeakSet<PaymentRecord>()

  constructor(settings: DeliverySettings) {
    this.#settings = settings
  }

  /** To be called before the answer is written. */
  watch({ req: { socket }, res }: Context, entry: PaymentRecord): void {
    if (!this.#onTheirWay.has(socket)) socket.once('close', () => this.#lost(socket))
    if (!this.#onTheirWay.has(res)) {
      res.once('finish', () => this.#finished(socket, res))
      res.once('close', () => {
        if (!res.writableFinished) this.#lost(res)
      })
    }
    for (const way of [socket, res]) this.#onTheirWay.set(way, this.#on(way).add(entry))
    if (socket.destroyed) this.#lost(socket)
  }

  /** Who asks again on a connection has read what came before: clients do not send requests ahead. */
  confirm(socket: Socket): Promise<unknown> | undefined {
    if (this.#settings.trustProxy || !this.#onTheirWay.has(socket)) return undefined
    const entries = this.#take(socket)
    for (const entry of entries) this.#received.add(entry)
    return Promise.all(entries.map((entry) => this.#mark(markReceived, entry)))
  }

  #finished(socket: Socket, response: ServerResponse): void {
    const { tasks, trustProxy } = this.#settings
    if (!trustProxy) {
      // A connection that was closed in good order after the last byte took the answer with it: `curl` does that.
      tasks.later(DELIVERED_MS, async () => {
        if (socket.errored !== null) return
        const entries = this.#take(response).filter((entry) => !this.#received.has(entry))
        await Promise.all(entries.map((entry) => this.#mark(markReceived, entry)))
      })
      return
    }
    for (const entry of this.#take(response)) {
      this.#on(socket).delete(entry)
      void this.#mark(markUndelivered, entry)
      tasks.later(DELIVERED_BY_PROXY_MS, () => this.#mark(markReceived, entry))
    }
  }

  /** Even a connection that was closed in good order may have been closed before the answer was read: nobody waits for it. */
  #lost(way: Socket | ServerResponse): void {
    for (const entry of this.#take(way)) void this.#mark(markUndelivered, entry)
  }

  #on(way: Socket | ServerResponse): Set<PaymentRecord> {
    return this.#onTheirWay.get(way) ?? new Set()
  }

  #take(way: Socket | ServerResponse): readonly PaymentRecord[] {
    const entries = Array.from(this.#on(way))
    this.#on(way).clear()
    return entries
  }

  #mark(how: typeof markReceived, entry: PaymentRecord): Promise<void> {
    const { desk, tasks, buyers, report } = this.#settings
    buyers.forget(entry.id)
    return tasks.add(how(desk, entry).catch(report))
  }
}
