import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { Context } from 'koa'
import type { ValidationError } from '../catalog/validation-error.ts'
import {
  ERRORS,
  loggedDetail,
  NOT_CHARGED,
  type ChargeMembers,
  type Charged,
  type ErrorCode,
  type Failure,
} from '../errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../json.ts'
import type { LeaseContext } from '../ledger/lease.ts'
import type { AnswerHead, StoredAnswer, PaymentRecord } from '../ledger/payment-record.ts'
import type { Micros } from '../money.ts'
import { type ConnectedBuyers } from '../purchase/request.ts'
import { problemMembers } from '../purchase/problem.ts'
import { markReceived, markUndelivered } from '../purchase/delivery-marks.ts'

/** What a line says besides method, status and time; kept in `ctx.state`. */
export interface Notes {
  readonly place?: string
  readonly price?: Micros | undefined
  readonly code?: ErrorCode | undefined
  readonly detail?: string | undefined
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
  /** Instead of a body: sent piece by piece. */
  readonly stream?: Readable
  /** Names of request headers that the answer depends on. */
  readonly vary?: string
  /** Why it is no answer. */
  readonly code?: ErrorCode
  /** The same in a sentence, for the log. */
  readonly detail?: string
  /** Whether the answer came from the cache, where it says so. */
  readonly cached?: boolean
}

export function respond(
  ctx: Context,
  { status, headers, body, stream, vary, code, detail, cached }: Reply,
): void {
  note(ctx, { code, detail, cached })
  ctx.status = status
  ctx.set(headers)
  if (vary !== undefined) {
    // Setting it again parses the names on both sides, which takes time.
    if (ctx.response.get('Vary')) ctx.vary(vary)
    else ctx.set('Vary', vary)
  }
  ctx.body = stream ?? body
  // The buyer learns that the stream has begun, and middleware that would buffer its chunks leaves it alone.
  if (stream !== undefined && ctx.method !== 'HEAD') ctx.flushHeaders()
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
    detail,
  }
}

/** A failure of the handler with its own status and message; nothing of an unknown error. */
export function failed(failure: Failure, { charged, ...refund }: ChargeMembers = NOT_CHARGED): Reply {
  const { code, detail, extra, retryAfter } = failure
  const headers =
    retryAfter === undefined ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(retryAfter))) }
  const reply = problem(code, detail, { charged, extra: { ...extra, ...refund }, headers })
  return { ...reply, detail: loggedDetail(failure) }
}

/** 422 in the shape of the specification's HTTPValidationError. */
export function invalid(errors: readonly ValidationError[], charge = NOT_CHARGED): Reply {
  return {
    status: 422,
    headers: { 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify({ detail: errors, ...charge }),
    code: 'parameters_invalid',
  }
}

/** The content is unknown: a browser must neither guess its type nor run it as a page of this service. */
const INERT = { 'X-Content-Type-Options': 'nosniff', 'Content-Security-Policy': 'sandbox' }

/** A stored answer, or a stream that is being stored. */
export function ok(
  stored: StoredAnswer | (AnswerHead & { readonly kind: 'stream'; readonly body: Readable }),
  headers: Readonly<Record<string, string>>,
): Reply {
  if (stored.kind === 'stream')
    return {
      status: 200,
      // nginx and similar proxies buffer responses unless told otherwise.
      headers: {
        'Content-Type': stored.type,
        'X-Accel-Buffering': 'no',
        ...INERT,
        ...stored.headers,
        ...headers,
      },
      body: '',
      stream: stored.body,
    }
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

/** Tasks that use the ledger, which is closed only after they end, whether or not a request waits for them. */
export class BackgroundTasks {
  readonly #work = new Set<Promise<unknown>>()
  readonly #later = new Set<NodeJS.Timeout>()
  readonly #ending = new AbortController()

  /** Aborted when the service stops. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** Tracks a task and returns it. */
  add<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work)
    const counted = work.finally(() => this.#work.delete(work))
    // The request that waits for the task handles its failure.
    counted.catch(() => undefined)
    return work
  }

  /** Starts a task after `ms` milliseconds, unless the service stops before. */
  later(ms: number, begin: () => Promise<unknown>): void {
    const timer = setTimeout(() => {
      this.#later.delete(timer)
      void this.add(begin())
    }, ms)
    timer.unref()
    this.#later.add(timer)
  }

  /** Starts a task every `ms` milliseconds, never concurrently, until the service stops. */
  every(ms: number, begin: () => Promise<unknown>): void {
    this.later(ms, async () => {
      await begin().finally(() => {
        if (!this.ending.aborted) this.every(ms, begin)
      })
    })
  }

  /** Cancels pending tasks; resolves when the started ones have ended. */
  async end(): Promise<void> {
    this.#ending.abort()
    for (const timer of this.#later) clearTimeout(timer)
    this.#later.clear()
    await Promise.allSettled(this.#work)
  }
}

/** Aborted when the connection closes before the answer is sent. */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.closed) gone.abort()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  return gone.signal
}

/** An answer counts as delivered this long after its last byte without a reset. */
export const DELIVERED_MS = 2_000
/**
 * A proxy accepts the answer whether or not the buyer does, and shares its connections between buyers. Until this
 * long after the last byte, an equal purchase by the same buyer is treated as a retry after a lost answer.
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

/** Tracks the delivery of paid answers. */
export class Deliveries {
  readonly #settings: DeliverySettings
  /** Answers whose delivery is unconfirmed. One response may contain several: older MCP revisions have batches. */
  readonly #onTheirWay = new WeakMap<Socket | ServerResponse, Set<PaymentRecord>>()

  /** Answers that a further request on their connection has confirmed. */
  readonly #received = new WeakSet<PaymentRecord>()
  /** Streams that are still being recorded. */
  readonly #recorded = new WeakMap<PaymentRecord, Promise<void>>()

  constructor(settings: DeliverySettings) {
    this.#settings = settings
  }

  /** Must be called before the answer is written. Until `recorded` resolves, the record belongs to the purchase. */
  watch({ req: { socket }, res }: Context, entry: PaymentRecord, recorded?: Promise<void>): void {
    if (recorded !== undefined) this.#recorded.set(entry, this.#settings.tasks.add(recorded))
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

  /** Confirms earlier answers on a connection with a further request: clients do not send requests ahead. */
  confirm(socket: Socket): Promise<unknown> | undefined {
    if (this.#settings.trustProxy || !this.#onTheirWay.has(socket)) return undefined
    const entries = this.#take(socket)
    for (const entry of entries) this.#received.add(entry)
    return Promise.all(entries.map((entry) => this.#mark(markReceived, entry)))
  }

  #finished(socket: Socket, response: ServerResponse): void {
    const { tasks, trustProxy } = this.#settings
    if (!trustProxy) {
      // A connection that was closed normally after the last byte has delivered the answer: `curl` does that.
      tasks.later(DELIVERED_MS, async () => {
        // A process that was busy or suspended meanwhile runs its timers before it reads what its connections have brought.
        await setImmediate()
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

  /** Even a connection that was closed normally may not have delivered the answer: no request waits for it any more. */
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
    const recorded = this.#recorded.get(entry)
    const marked = recorded === undefined ? how(desk, entry) : recorded.then(() => how(desk, entry))
    return tasks.add(marked.catch(report))
  }
}

/** The connections of buyers to this process, by public id of the payment. */
export class BuyerConnections implements ConnectedBuyers {
  readonly #connections = new Map<string, Set<AbortSignal>>()

  connect(payment: string, gone: AbortSignal): void {
    const connections = this.#connections.get(payment)
    if (connections === undefined) this.#connections.set(payment, new Set([gone]))
    else connections.add(gone)
  }

  disconnect(payment: string, gone: AbortSignal): void {
    const connections = this.#connections.get(payment)
    connections?.delete(gone)
    if (connections?.size === 0) this.#connections.delete(payment)
  }

  forget(payment: string): void {
    this.#connections.delete(payment)
  }

  has(payment: string): boolean {
    const connections = this.#connections.get(payment)
    return connections !== undefined && Array.from(connections).some(({ aborted }) => !aborted)
  }
}
