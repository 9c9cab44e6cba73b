import type { Context } from 'koa'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { LedgerAccess } from '../ledger/lease.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { markReceived, markUndelivered } from '../purchase/delivery-marks.ts'
import type { ConnectedBuyers } from '../purchase/request.ts'
import type { BackgroundTasks } from './background-tasks.ts'

/** An answer counts as delivered this long after its last byte without a reset. */
export const DELIVERED_MS = 2_000

/**
 * A proxy accepts the answer whether or not the buyer does, and shares its connections between buyers. Until this
 * long after the last byte, an equal purchase by the same buyer is treated as a retry after a lost answer.
 */
const DELIVERED_BY_PROXY_MS = 30_000

export interface DeliverySettings {
  readonly leaseContext: LedgerAccess
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
  /** What waits for the end of `DELIVERED_MS` after an answer on a connection: a further request on it ends the wait. */
  readonly #waits = new WeakMap<Socket, Set<() => void>>()
  /** Answers that a further request on their connection has confirmed. */
  readonly #confirmed = new WeakSet<PaymentRecord>()
  /** Streams that are still being recorded. */
  readonly #recorded = new WeakMap<PaymentRecord, Promise<void>>()

  constructor(settings: DeliverySettings) {
    this.#settings = settings
  }

  /** Must end before the answer is written. Until `recorded` resolves, the record belongs to the purchase. */
  async watch(
    { req: { socket }, res }: Pick<Context, 'req' | 'res'>,
    record: PaymentRecord,
    recorded?: Promise<void>,
  ): Promise<void> {
    if (recorded !== undefined) this.#recorded.set(record, this.#settings.tasks.add(recorded))
    if (!this.#onTheirWay.has(socket)) socket.once('close', () => this.#lost(socket))
    if (!this.#onTheirWay.has(res)) {
      res.once('finish', () => this.#finished(socket, res))
      res.once('close', () => {
        if (!res.writableFinished) this.#lost(res)
      })
    }
    for (const way of [socket, res]) this.#onTheirWay.set(way, this.#on(way).add(record))
    // A busy process may not have read yet that the client has left. After two turns of the event loop it has.
    for (let turn = 0; turn < 2; turn += 1) await setImmediate()
    if (socket.destroyed) this.#lost(socket)
  }

  /** Confirms earlier answers on a connection with a further request: clients do not send requests ahead. */
  confirm(socket: Socket): void {
    if (this.#settings.trustProxy || !this.#onTheirWay.has(socket)) return
    const records = this.#take(socket)
    for (const record of records) this.#confirmed.add(record)
    // A wait keeps its response and all that belongs to it in memory.
    for (const cancel of this.#waits.get(socket) ?? []) cancel()
    this.#waits.delete(socket)
    for (const record of records) void this.#markReceived(record)
  }

  #finished(socket: Socket, response: ServerResponse): void {
    if (this.#settings.trustProxy) {
      for (const record of this.#take(response)) {
        this.#on(socket).delete(record)
        this.#leftWithProxy(record)
      }
      return
    }
    // The connection of a client that left just before ends like any other, but an empty write fails on it.
    if (socket.writable) socket.write('')
    const waits = this.#waits.get(socket) ?? new Set()
    this.#waits.set(socket, waits)
    // A connection that was closed normally after the last byte has delivered the answer: `curl` does that.
    const cancel = this.#settings.tasks.later(DELIVERED_MS, async () => {
      waits.delete(cancel)
      // A process that was busy or suspended meanwhile runs its timers before it reads what its connections have brought.
      await setImmediate()
      if (socket.errored !== null) return
      const records = this.#take(response).filter((record) => !this.#confirmed.has(record))
      // Otherwise the end of the connection would look for them in the ledger again.
      for (const record of records) this.#on(socket).delete(record)
      await Promise.all(records.map((record) => this.#markReceived(record)))
    })
    waits.add(cancel)
  }

  /** Apart from its response, which would stay in memory for as long as this waits. */
  #leftWithProxy(record: PaymentRecord): void {
    void this.#markUndelivered(record)
    this.#settings.tasks.later(DELIVERED_BY_PROXY_MS, () => this.#markReceived(record))
  }

  /** Even a connection that was closed normally may not have delivered the answer: no request waits for it any more. */
  #lost(way: Socket | ServerResponse): void {
    for (const record of this.#take(way)) void this.#markUndelivered(record)
  }

  #on(way: Socket | ServerResponse): Set<PaymentRecord> {
    return this.#onTheirWay.get(way) ?? new Set()
  }

  #take(way: Socket | ServerResponse): readonly PaymentRecord[] {
    const records = Array.from(this.#on(way))
    this.#on(way).clear()
    return records
  }

  #markReceived(record: PaymentRecord): Promise<void> {
    const marked = this.#mark(markReceived, record)
    this.#settings.buyers.arrived(record.id, marked)
    return marked
  }

  #markUndelivered(record: PaymentRecord): Promise<void> {
    this.#settings.buyers.forget(record.id)
    return this.#mark(markUndelivered, record)
  }

  #mark(how: typeof markReceived, record: PaymentRecord): Promise<void> {
    const { leaseContext, tasks, report } = this.#settings
    const recorded = this.#recorded.get(record)
    const marked =
      recorded === undefined ? how(leaseContext, record) : recorded.then(() => how(leaseContext, record))
    return tasks.add(marked.catch(report))
  }
}
