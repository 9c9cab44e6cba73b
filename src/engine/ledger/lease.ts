import { deleteAnswer, readAnswer, writeAnswer } from './answers.ts'
import type { PaymentRecord, Purchase, Receipt, Refund, State, StoredAnswer } from './payment-record.ts'
import type { Lease, LeaseState, Ledger } from './ledger.ts'
import { newRecord, closed, isLeased, LEASE_MS, nextCheckAt, casToken } from './payment-lifecycle.ts'

/** Another process has taken the entry over: whatever this one was doing to it is void. */
export class LeaseLostError extends Error {
  constructor(id: string) {
    super(`another process has taken over payment ${id}`)
    this.name = 'LeaseLostError'
  }
}

export interface Changes extends Partial<Pick<PaymentRecord, 'dispatch' | 'receipt' | 'pendingWrite'>> {
  readonly answer?: StoredAnswer
}

type Unscheduled = Omit<PaymentRecord, 'due'>

/**
 * One process's hold on one payment: the only way entries change. Changes are made one after the other, each durable
 * before the next begins, and the lease is renewed until the claim is put down. After that nothing writes to the entry
 * any more, so that the entry handed out last is the one that is stored.
 */
export class PaymentLease {
  readonly #ledger: Ledger
  readonly #now: () => number
  #entry: PaymentRecord
  #answer: StoredAnswer | undefined
  #last: Promise<unknown> = Promise.resolve()
  #changing = 0
  #timer: NodeJS.Timeout | undefined

  constructor(ledger: Ledger, entry: PaymentRecord, now: () => number) {
    this.#ledger = ledger
    this.#entry = entry
    this.#now = now
    this.#timer = setInterval(() => this.#renew(), LEASE_MS / 3)
    this.#timer.unref()
  }

  #renew(): void {
    // Every change renews the lease; one queued behind the last change would alter the entry that was just handed out.
    if (this.#changing > 0) return
    this.#change({}).catch((fault: unknown) => {
      // A store that cannot be reached now may be back at the next turn; a lost claim stays lost.
      if (fault instanceof LeaseLostError) this.stopRenewal()
    })
  }

  get entry(): PaymentRecord {
    return this.#entry
  }

  /** Throws `LeaseLostError` when another process has taken over. */
  advance(state: State, changes: Changes = {}): Promise<PaymentRecord> {
    return this.update(changes, state)
  }

  /** Writes down what has happened, without moving on unless there is a state to move to. */
  update({ answer, ...changes }: Changes, state?: State): Promise<PaymentRecord> {
    const moved = state === undefined ? changes : { ...changes, state }
    if (answer === undefined) return this.#change(moved)
    return this.#write(async (entry) => {
      const reference = await writeAnswer(this.#ledger.answers, entry, answer)
      this.#answer = answer
      return { ...entry, ...moved, answer: reference }
    }, LEASE_MS)
  }

  /** The stored answer; undefined when there is none, or when it was lost: then the work has to be done again. */
  async readAnswer(): Promise<StoredAnswer | undefined> {
    if (this.#entry.answer === undefined) return undefined
    return (this.#answer ??= await readAnswer(this.#ledger.answers, this.#entry))
  }

  /** What the handler had stored is decided. */
  clearPending(): Promise<PaymentRecord> {
    return this.#write(({ pendingWrite: _pendingWrite, ...entry }) => entry, LEASE_MS)
  }

  /** Nothing was sent that could move the money: the stored answer waits for the same payment to come again. */
  async keepForRetry(): Promise<void> {
    await this.#write(({ dispatch: _dispatch, ...entry }) => ({ ...entry, state: 'fulfilled' }), 0)
    this.stopRenewal()
  }

  /** The time of redelivery is over: the record of the sale stays, the answer goes. */
  purgeAnswer(): Promise<PaymentRecord> {
    return this.#withoutAnswer((entry) => ({ ...closed(entry), owner: entry.owner }), 0)
  }

  /** The money has moved. What was sent is kept until the payment has expired: a reorganisation may ask for it again. */
  settle(receipt: Receipt): Promise<PaymentRecord> {
    const settledAt = this.#now()
    return this.#write((entry) => ({ ...entry, state: 'settled', receipt, settledAt }), LEASE_MS)
  }

  /** The money goes back: the payment is answered no more. */
  refund(refund: Refund): Promise<PaymentRecord> {
    return this.#change({ refund, redeliver: 0 })
  }

  /** Nothing was charged and nothing will be: what was worked for and signed for it is forgotten. */
  void(): Promise<PaymentRecord> {
    return this.#withoutAnswer(({ answer: _answer, dispatch: _dispatch, ...entry }) => {
      return { ...entry, state: 'voided', identifier: undefined }
    }, LEASE_MS)
  }

  async #withoutAnswer(
    change: (entry: PaymentRecord) => Unscheduled,
    leaseMs: number,
  ): Promise<PaymentRecord> {
    const { id, answer } = this.#entry
    const entry = await this.#write(change, leaseMs)
    this.#answer = undefined
    if (answer !== undefined) await deleteAnswer(this.#ledger.answers, id, answer)
    return entry
  }

  /** The payment has bought nothing and moved nothing: as if it had never come. */
  async delete(): Promise<void> {
    this.stopRenewal()
    await this.#last
    const { id, answer } = this.#entry
    if (!(await this.#ledger.remove(this.#entry))) throw new LeaseLostError(id)
    if (answer !== undefined) await deleteAnswer(this.#ledger.answers, id, answer)
  }

  /** Releases the lease at once and leaves the record as it is. */
  async release(): Promise<void> {
    await this.#change({}, 0)
    this.stopRenewal()
  }

  stopRenewal(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** A store that does not answer may have made the change: taken for lost, the payment would wait for its lease. */
  async #replace(previous: PaymentRecord, entry: PaymentRecord): Promise<boolean> {
    try {
      return await this.#ledger.replace(previous, entry)
    } catch (fault) {
      const standing = await this.#ledger.get(entry.key).catch(() => undefined)
      if (standing !== undefined && casToken(standing) === casToken(entry)) return true
      throw fault
    }
  }

  #change(changes: Partial<PaymentRecord>, leaseMs: number = LEASE_MS): Promise<PaymentRecord> {
    return this.#write((entry) => ({ ...entry, ...changes }), leaseMs)
  }

  #write(
    change: (entry: PaymentRecord) => Unscheduled | Promise<Unscheduled>,
    leaseMs: number,
  ): Promise<PaymentRecord> {
    const writing = this.#last.then(async () => {
      const previous = this.#entry
      const next = await change(previous)
      const now = this.#now()
      const changed = {
        ...next,
        leaseUntil: now + leaseMs,
        updatedAt: now,
        version: previous.version + 1,
      }
      const entry: PaymentRecord = { ...changed, due: nextCheckAt(changed) }
      if (!(await this.#replace(previous, entry))) throw new LeaseLostError(previous.id)
      this.#entry = entry
      return entry
    })
    this.#changing += 1
    this.#last = writing
      .catch(() => undefined)
      .then(() => {
        this.#changing -= 1
      })
    return writing
  }
}

type Reservation =
  | { readonly kind: 'claimed'; readonly claim: PaymentLease }
  | { readonly kind: 'taken'; readonly entry: PaymentRecord }

export interface LeaseContext {
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  readonly now: () => number
}

/** Takes a payment for one purchase before any work is done for it; atomic over all processes. */
export async function reserve(
  { ledger, owner, now }: LeaseContext,
  purchase: Purchase,
): Promise<Reservation> {
  let entry = newRecord(purchase, owner, now(), LEASE_MS)
  for (;;) {
    const standing = await ledger.insert(entry)
    if (standing === undefined) return { kind: 'claimed', claim: new PaymentLease(ledger, entry, now) }
    if (!isReusable(standing, now())) return { kind: 'taken', entry: standing }
    // What is left of it, its key or its identifier, is free for the first that asks.
    if (standing.key === entry.key)
      entry = { ...entry, attempts: standing.attempts + 1, version: standing.version + 1 }
    await ledger.remove(standing)
  }
}

/** Takes over an entry whose owner has died; undefined when it has not, or another process was faster. */
export async function acquireExpired(
  { ledger, owner, now }: LeaseContext,
  entry: PaymentRecord,
): Promise<PaymentLease | undefined> {
  const time = now()
  if (isLeased(entry, time)) return undefined
  const taken = {
    ...entry,
    owner,
    leaseUntil: time + LEASE_MS,
    attempts: entry.attempts + 1,
    updatedAt: time,
    version: entry.version + 1,
  }
  const next = { ...taken, due: nextCheckAt(taken) }
  return (await ledger.replace(entry, next)) ? new PaymentLease(ledger, next, now) : undefined
}

/** Nothing was charged, nothing is left of the work and nobody is at it: the payment may be used as if it were new, for another purchase too. */
export function isReusable(entry: PaymentRecord, now: number): boolean {
  if (entry.pendingWrite !== undefined) return false
  return entry.state === 'voided' || (entry.state === 'reserved' && !isLeased(entry, now))
}

const LOCK_MS = 15_000
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
    const until = now() + LOCK_MS
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
