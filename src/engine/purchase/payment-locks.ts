import { LOCK_PATIENCE_MS } from '../base/money-times.ts'
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

  /** Runs `work` while nobody else holds the lock; `undefined` when others hold it for too long. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
    const before = this.#queues.get(name)
    const turn = this.#takeTurn(name, work, before)
    // Who gives up waiting does not let the next one in: the one before both may still be at work.
    const settled = Promise.allSettled([before, turn])
    this.#queues.set(name, settled)
    void settled.then(() => {
      if (this.#queues.get(name) === settled) this.#queues.delete(name)
    })
    return turn
  }

  async #takeTurn<T>(
    name: string,
    work: () => Promise<T>,
    before: Queue | undefined,
  ): Promise<T | undefined> {
    if (before !== undefined && !(await this.#isOver(before))) return undefined
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

  /** Whether the payments before this one end while it waits. */
  #isOver(before: Queue): Promise<boolean> {
    return new Promise((resolve) => {
      const stop = this.#deps.every(LOCK_PATIENCE_MS, () => {
        stop()
        resolve(false)
      })
      void before.then(() => {
        stop()
        resolve(true)
      })
    })
  }
}

/** A third of the length of a lock’s lease. */
const RENEWAL_MS = 5_000
