import type { LeaseContext } from './payment-lease.ts'
import type { Lease, LeaseState } from './ledger.ts'

const LEASE_MS = 15_000
const RETRY_MS = 50
/** Longer than a lease: the one of a process that has died ends in the meantime. */
export const ACQUIRE_TIMEOUT_MS = 20_000
/** How long a busy process keeps the thing while others wait for it. */
const TURN_MS = 1_000

export interface LockSettings extends LeaseContext {
  /** What is taken in turns. */
  readonly name: string
  readonly sleep: (ms: number) => Promise<void>
}

/** Exclusive use of one thing, shared between processes by a lease of the ledger. */
export class DistributedLock {
  readonly #settings: LockSettings
  #lease: Lease | undefined
  #until = 0
  #since = 0

  constructor(settings: LockSettings) {
    this.#settings = settings
  }

  /**
   * Waits for the thing, for `ms` milliseconds at the most; undefined when another process does not give it away. A new
   * turn has a higher fence.
   */
  async acquire(ms: number = ACQUIRE_TIMEOUT_MS): Promise<Lease | undefined> {
    const { now, sleep } = this.#settings
    const patience = now() + ms
    for (;;) {
      const lease = await this.#renew()
      if (lease !== undefined) return lease
      if (now() >= patience) return undefined
      await this.#askFor(4 * RETRY_MS)
      await sleep(RETRY_MS)
    }
  }

  /** Whether the thing is still this turn's, and will be for the next `ms` milliseconds, which are less than a lease. */
  async extend(ms: number): Promise<boolean> {
    const held = this.#lease
    if (held === undefined || this.#until - this.#settings.now() > ms) return held !== undefined
    const renewed = await this.#renew()
    if (renewed === undefined || renewed.fencingToken === held.fencingToken) return renewed !== undefined
    // Another process has had it in the meantime: what it has left counts, and not what this turn knew before.
    await this.release(renewed.leaseState)
    return false
  }

  /**
   * Lets a waiting process have the thing when this turn has been a long one: a busy process would never end its own.
   * Never throws, as `release`.
   */
  async yieldIfContended(left: LeaseState | undefined): Promise<void> {
    const { now, sleep } = this.#settings
    if (this.#lease === undefined || now() - this.#since < TURN_MS) return
    if (await this.#askFor(0).catch(() => true)) this.#since = now()
    else {
      await this.release(left)
      await sleep(2 * RETRY_MS)
    }
  }

  /** Never throws: what was done under the lease is done, and an unreachable store lets it end by itself. */
  async release(left: LeaseState | undefined): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    if (lease !== undefined) await this.#settings.ledger.release(lease, left).catch(() => undefined)
  }

  async #renew(): Promise<Lease | undefined> {
    const { ledger, name, owner, now } = this.#settings
    const until = now() + LEASE_MS
    const lease = await ledger.lease(name, owner, now(), until)
    if (lease !== undefined && lease.fencingToken !== this.#lease?.fencingToken) this.#since = now()
    this.#lease = lease
    this.#until = until
    return lease
  }

  /** Puts this process on the list of those who wait, which has one place; false when another one is on it. */
  async #askFor(ms: number): Promise<boolean> {
    const { ledger, name, owner, now } = this.#settings
    return (await ledger.lease(`${name}:waiting`, owner, now(), now() + ms)) !== undefined
  }
}
