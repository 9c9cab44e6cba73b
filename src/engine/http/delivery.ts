import type { Socket } from 'node:net'
import type { Context } from 'koa'
import type { Desk } from '../ledger/claim.ts'
import type { Entry } from '../ledger/entry.ts'
import type { Attendance } from '../paywall/attendance.ts'
import { markSent, markUndelivered } from '../paywall/delivery.ts'
import type { InFlight } from './in-flight.ts'

/** Two seconds after the last byte without a reset: the buyer has the answer. */
const DELIVERED_MS = 2_000

export interface DeliverySettings {
  readonly desk: Desk
  readonly inFlight: InFlight
  readonly attendance: Attendance
  readonly report: (fault: unknown) => void
}

/** Watches paid answers on their way to the buyers. */
export class Deliveries {
  readonly #settings: DeliverySettings
  /** The last answer on a connection, while it is not known to have arrived; undefined when it is. */
  readonly #onTheirWay = new WeakMap<Socket, Entry | undefined>()

  constructor(settings: DeliverySettings) {
    this.#settings = settings
  }

  /** To be called before the answer is written. */
  watch({ req: { socket }, res }: Context, entry: Entry): void {
    if (!this.#onTheirWay.has(socket)) socket.once('close', () => this.#closed(socket))
    this.#onTheirWay.set(socket, entry)
    if (socket.destroyed) this.#closed(socket)
    res.once('finish', () => {
      this.#settings.inFlight.later(DELIVERED_MS, async () => {
        if (this.#onTheirWay.get(socket) === entry && socket.errored === null) await this.confirm(socket)
      })
    })
    res.once('close', () => {
      if (!res.writableFinished) this.#closed(socket)
    })
  }

  /** Who asks again on a connection has read what came before: clients do not send requests ahead. */
  async confirm(socket: Socket): Promise<void> {
    const entry = this.#onTheirWay.get(socket)
    if (entry === undefined) return
    this.#onTheirWay.set(socket, undefined)
    await this.#mark(markSent, entry)
  }

  /** Even a connection that was closed in good order may have been closed before the answer was read. */
  #closed(socket: Socket): void {
    const entry = this.#onTheirWay.get(socket)
    if (entry !== undefined) void this.#mark(markUndelivered, entry)
  }

  #mark(how: typeof markSent, entry: Entry): Promise<void> {
    const { desk, inFlight, attendance, report } = this.#settings
    attendance.end(entry.id)
    return inFlight.add(how(desk, entry).catch(report))
  }
}
