import type { AccessRecord } from '../engine/base/access-record.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'

/** One call, as far as this process has seen it. Times are milliseconds since the epoch. */
export interface FeedCall {
  /** Of the payment; for a call without one, of its request. */
  readonly id: string
  readonly operation: string
  readonly payment: string | undefined
  /** When it was answered with a 402. */
  readonly askedAt: number | undefined
  /** When its payment was taken. */
  readonly signedAt: number | undefined
  readonly settledAt: number | undefined
  readonly deliveredAt: number | undefined
  /** Why it ended otherwise; undefined: it did not. */
  readonly trouble: string | undefined
  readonly probe: boolean
}

/** How many calls are remembered. */
const MOST_CALLS = 60
/** How long after a 402 a payment is taken for the one of that call: programs sign at once. */
const LINKED_MS = 15_000
/** The call of a payment that is older is over. */
const OLD_MS = 600_000

/** The newest calls of this process, in which each fills in while it goes on. */
export class CallFeed {
  readonly #now: () => number
  readonly #calls = new Map<string, FeedCall>()
  readonly #listeners = new Set<(call: FeedCall) => void>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Newest first. */
  calls(): readonly FeedCall[] {
    return [...this.#calls.values()].toReversed()
  }

  /** Calls back for each change until the returned function is called. */
  listen(listener: (call: FeedCall) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  observe({ sale, status, outcome, payment, requestId }: AccessRecord): void {
    if (sale === undefined) return
    const { operation, paid, probe, wouldFail } = sale
    const now = this.#now()
    if (!paid) {
      if (status !== 402) return
      return this.#put({ ...NEW, id: requestId, operation, askedAt: now, trouble: wouldFail, probe })
    }
    if (outcome === 'ok') return
    const known = payment === undefined ? undefined : this.#calls.get(payment)
    const call = known ?? { ...NEW, id: payment ?? requestId, operation, payment, signedAt: now }
    this.#put({ ...call, trouble: outcome })
  }

  /** Called for each change of a payment that this process has made. */
  settle(previous: PaymentRecord, next: PaymentRecord): void {
    if (previous.state === next.state && previous.receipt === next.receipt) return
    const { id, operation, createdAt, receipt, settledAt, state, updatedAt } = next
    const known = this.#calls.get(id)
    if (known === undefined && this.#now() - createdAt > OLD_MS) return
    const call = known ?? {
      ...NEW,
      id,
      operation,
      payment: id,
      signedAt: createdAt,
      askedAt: this.#link(operation, createdAt),
    }
    this.#put({
      ...call,
      settledAt: receipt === undefined ? undefined : (call.settledAt ?? settledAt ?? updatedAt),
      deliveredAt: state === 'sent' ? (call.deliveredAt ?? updatedAt) : undefined,
      trouble:
        state === 'voided'
          ? (call.trouble ?? 'not charged')
          : state === 'unknown'
            ? 'outcome not known yet'
            : undefined,
    })
  }

  /** The 402 before a payment, where only one can be meant: it leaves the list, since the call goes on. */
  #link(operation: string, signedAt: number): number | undefined {
    const waiting = [...this.#calls.values()].filter(
      (call) =>
        call.operation === operation &&
        call.signedAt === undefined &&
        !call.probe &&
        call.trouble === undefined &&
        call.askedAt !== undefined &&
        call.askedAt <= signedAt &&
        signedAt - call.askedAt < LINKED_MS,
    )
    const [one, another] = waiting
    if (one === undefined || another !== undefined) return undefined
    this.#calls.delete(one.id)
    this.#tell({ ...one, trouble: MOVED })
    return one.askedAt
  }

  #put(call: FeedCall): void {
    this.#calls.set(call.id, call)
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size <= MOST_CALLS) break
      this.#calls.delete(oldest)
    }
    this.#tell(call)
  }

  #tell(call: FeedCall): void {
    for (const listener of this.#listeners) listener(call)
  }
}

/** The trouble of a call that goes on under the id of its payment. */
export const MOVED = 'moved'

const NEW = {
  payment: undefined,
  askedAt: undefined,
  signedAt: undefined,
  settledAt: undefined,
  deliveredAt: undefined,
  trouble: undefined,
  probe: false,
} as const
