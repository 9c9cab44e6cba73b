import { LOCK_MS, LOCK_PATIENCE_MS } from '../base/money-times.ts'
import type { LedgerAccess } from './lease.ts'
import type { Lease, LeaseState } from './ledger.ts'

const RETRY_MS = 50

/** How long a busy process keeps the lock while others wait. */
const TURN_MS = 1_000

export interface LockSettings extends LedgerAccess {
  /** Name of the locked resource. */
  readonly name: string
  readonly sleep: (ms: number) => Promise<void>
}

/** A lock shared between processes, by a lease of the ledger. */
export class DistributedLock {
  readonly #settings: LockSettings
  #lease: Lease | undefined
  #until = 0
  #since = 0

  constructor(settings: LockSettings) {
    this.#settings = settings
  }

  /**
   * Acquires the lock within `ms` milliseconds; undefined when another process keeps it. Each acquisition has a
   * higher fencing token.
   */
  async acquire(ms: number = LOCK_PATIENCE_MS): Promise<Lease | undefined> {
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

  /** Whether the lock is still held, for the next `ms` milliseconds, which must be less than a lease. */
  async extend(ms: number): Promise<boolean> {
    const held = this.#lease
    if (held === undefined || this.#until - this.#settings.now() > ms) return held !== undefined
    const renewed = await this.#renew()
    if (renewed === undefined || renewed.fencingToken === held.fencingToken) return renewed !== undefined
    // Another process has held it in the meantime: the state it has left counts, not the one known here.
    await this.release(renewed.leaseState)
    return false
  }

  /** Whether this process has kept the lock for as long as it may while others wait. */
  get isTurnOver(): boolean {
    return this.#lease !== undefined && this.#settings.now() - this.#since >= TURN_MS
  }

  /**
   * Releases the lock to a waiting process after this one has held it for long: a busy process would never release it
   * by itself. Never throws.
   */
  async yieldIfContended(left: LeaseState | undefined): Promise<void> {
    const { now, sleep } = this.#settings
    if (!this.isTurnOver) return
    if (await this.#askFor(0).catch(() => true)) this.#since = now()
    else {
      await this.release(left)
      await sleep(2 * RETRY_MS)
    }
  }

  /** Never throws: the work under the lock is done, and with an unreachable store the lease expires. */
  async release(left: LeaseState | undefined): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    if (lease !== undefined) await this.#settings.ledger.release(lease, left).catch(() => undefined)
  }

  async #renew(): Promise<Lease | undefined> {
    const { ledger, name, owner, now } = this.#settings
    const until = now() + LOCK_MS
    const lease = await ledger.lease(name, owner, now(), until)
    if (lease !== undefined && lease.fencingToken !== this.#lease?.fencingToken) this.#since = now()
    this.#lease = lease
    this.#until = until
    return lease
  }

  /** Registers this process as waiting, in a single place; false when another one has it. */
  async #askFor(ms: number): Promise<boolean> {
    const { ledger, name, owner, now } = this.#settings
    return (await ledger.lease(`${name}:waiting`, owner, now(), now() + ms)) !== undefined
  }
}
