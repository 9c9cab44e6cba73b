import { DistributedLock } from '../ledger/distributed-lock.ts'
import type { LeaseContext } from '../ledger/lease.ts'

interface LockDeps extends LeaseContext {
  readonly sleep: (ms: number) => Promise<void>
}

/** The last payment in the queue of a channel of this process. */
type Queue = Promise<unknown>

/**
 * Locks by name, for payments that draw on one channel or account: first in this process, in the order of arrival, then
 * over all processes. One instance a process, since a lease of the ledger belongs to the whole process.
 */
export class PaymentLocks {
  readonly #deps: LockDeps
  readonly #queues = new Map<string, Queue>()

  constructor(deps: LockDeps) {
    this.#deps = deps
  }

  /** Runs `work` while nobody else holds the lock; `undefined` when it is held elsewhere for too long. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
    const before = this.#queues.get(name)
    const turn = this.#takeTurn(name, work, before)
    const settled = turn.catch(() => undefined)
    this.#queues.set(name, settled)
    try {
      return await turn
    } finally {
      if (this.#queues.get(name) === settled) this.#queues.delete(name)
    }
  }

  async #takeTurn<T>(
    name: string,
    work: () => Promise<T>,
    before: Queue | undefined,
  ): Promise<T | undefined> {
    await before
    const lock = new DistributedLock({ ...this.#deps, name: `payment:${name}` })
    if ((await lock.acquire()) === undefined) return undefined
    // Work may take longer than a lease of the ledger.
    const { every } = this.#deps
    const stop = every(RENEWAL_MS, () => void lock.extend(RENEWAL_MS * 2).catch(() => undefined))
    try {
      return await work()
    } finally {
      stop()
      // The buyer need not wait for it, and the next payment of this process takes the lock after it.
      void lock.release(undefined)
    }
  }
}

/** A third of the length of a lock’s lease. */
const RENEWAL_MS = 5_000
