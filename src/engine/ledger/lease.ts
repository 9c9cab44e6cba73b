import { deleteAnswer, readAnswer, writeAnswer, writeStream } from './answers.ts'
import type {
  AnswerHead,
  PaymentRecord,
  Purchase,
  Receipt,
  Refund,
  State,
  StoredAnswer,
} from './payment-record.ts'
import type { Change, Lease, LeaseState, Ledger } from './ledger.ts'
import {
  newRecord,
  closed,
  firstLook,
  isLeased,
  LEASE_MS,
  nextCheckAt,
  casToken,
} from './payment-lifecycle.ts'

/** Another process has taken over the payment: all further changes by this one are void. */
export class LeaseLostError extends Error {
  constructor(id: string) {
    super(`another process has taken over payment ${id}`)
    this.name = 'LeaseLostError'
  }
}

/** The change of another payment in the same commit failed: nothing was stored for this one either. */
export class CommitAbandonedError extends Error {
  constructor() {
    super('the commit was abandoned: another payment of it could not be changed')
    this.name = 'CommitAbandonedError'
  }
}

/** Stores the changes of several payments in one commit: all or none. */
export class JointCommit {
  readonly #ledger: Ledger
  readonly #parties: number
  readonly #changes: Change[] = []
  readonly #outcome: Promise<void>
  #resolve: (outcome: Promise<void>) => void = () => undefined
  #reject: (fault: CommitAbandonedError) => void = () => undefined

  constructor(ledger: Ledger, parties: number) {
    this.#ledger = ledger
    this.#parties = parties
    this.#outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#outcome.catch(() => undefined) // Nobody may be waiting when it is abandoned.
  }

  /** Resolves once the changes of all parties are stored; rejects with `CommitAbandonedError` when none is. */
  async store(change: Change): Promise<void> {
    this.#changes.push(change)
    if (this.#changes.length === this.#parties) this.#resolve(this.#commit())
    return this.#outcome
  }

  /** Withdraws one party that has nothing to store. Without effect once the commit has begun. */
  abandon(): void {
    this.#reject(new CommitAbandonedError())
  }

  async #commit(): Promise<void> {
    if (!(await this.#ledger.commit(this.#changes))) throw new CommitAbandonedError()
  }
}

export interface Changes extends Partial<
  Pick<PaymentRecord, 'dispatch' | 'receipt' | 'pendingWrite' | 'runs'>
> {
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
    // Every change renews the lease; a renewal after the last change would alter the record that was handed out.
    if (this.#changing > 0) return
    this.#change({}).catch((fault: unknown) => {
      // A store that is unavailable now may be back at the next renewal; a lost lease stays lost.
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

  /** Like `advance` to `settling`, in one commit with other payments if there are any. */
  dispatch(changes: Pick<PaymentRecord, 'dispatch' | 'runs'>, joint?: JointCommit): Promise<PaymentRecord> {
    return this.#write((entry) => ({ ...entry, ...changes, state: 'settling' }), LEASE_MS, joint)
  }

  /** Records an event, with a change of state if one is given. */
  update({ answer, ...changes }: Changes, state?: State): Promise<PaymentRecord> {
    const moved = state === undefined ? changes : { ...changes, state }
    if (answer === undefined) return this.#change(moved)
    return this.#write(async (entry) => {
      const reference = await writeAnswer(this.#ledger.answers, entry, answer)
      this.#answer = answer
      return { ...entry, ...moved, answer: reference }
    }, LEASE_MS)
  }

  /** Stores a stream while it arrives, outside of the queue of changes: the lease is renewed meanwhile. */
  async storeStream(head: AnswerHead, chunks: AsyncIterable<Uint8Array>): Promise<PaymentRecord> {
    const answer = await writeStream(this.#ledger.answers, this.#entry, head, chunks)
    return this.#change({ state: 'fulfilled', answer })
  }

  /** The stored answer; undefined when there is none or it was lost: then the handler must run again. */
  async readAnswer(): Promise<StoredAnswer | undefined> {
    if (this.#entry.answer === undefined) return undefined
    return (this.#answer ??= await readAnswer(this.#ledger.answers, this.#entry))
  }

  /** The handler's pending write is committed or aborted. */
  clearPending(): Promise<PaymentRecord> {
    return this.#write(({ pendingWrite: _pendingWrite, ...entry }) => entry, LEASE_MS)
  }

  /** Nothing was sent that could move money: the stored answer waits for the same payment. */
  async keepForRetry(): Promise<void> {
    await this.#write(({ dispatch: _dispatch, ...entry }) => ({ ...entry, state: 'fulfilled' }), 0)
    this.stopRenewal()
  }

  /** Deletes the answer after the redelivery period, and keeps the record. */
  purgeAnswer(): Promise<PaymentRecord> {
    return this.#withoutAnswer((entry) => ({ ...closed(entry), owner: entry.owner }), 0)
  }

  /** The money has moved. What was sent is kept until its block is final, in case of a reorganisation. */
  settle(receipt: Receipt): Promise<PaymentRecord> {
    const settledAt = this.#now()
    const settled = { receipt, settledAt, ...firstLook(receipt, settledAt) }
    return this.#write(
      ({ undone, ...entry }) => ({ ...entry, state: undone?.state ?? 'settled', ...settled }),
      LEASE_MS,
    )
  }

  /** Another block contains the transaction, or another transaction the payment. */
  move(receipt: Receipt): Promise<PaymentRecord> {
    return this.#change({ receipt, ...firstLook(receipt, this.#now()) })
  }

  /** No block contains the payment any more: whether it is charged is unknown again. */
  undo(): Promise<PaymentRecord> {
    return this.#write(({ receipt, lookAt: _lookAt, settledAt: _settledAt, ...entry }) => {
      const undone = { state: entry.state, transaction: receipt?.transaction ?? '' }
      return { ...entry, state: 'unknown', undone }
    }, LEASE_MS)
  }

  /** Records a refund: the payment is no longer answered. */
  refund(refund: Refund): Promise<PaymentRecord> {
    return this.#change({ refund, redeliver: 0 })
  }

  /** Nothing was or will be charged: deletes the answer and everything that was signed. */
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

  /** Deletes the record of a payment that bought nothing and moved nothing. */
  async delete(): Promise<void> {
    this.stopRenewal()
    await this.#last
    const { id, answer } = this.#entry
    if (!(await this.#ledger.remove(this.#entry))) throw new LeaseLostError(id)
    if (answer !== undefined) await deleteAnswer(this.#ledger.answers, id, answer)
  }

  /** Releases the lease at once and leaves the record unchanged. */
  async release(): Promise<void> {
    await this.#change({}, 0)
    this.stopRenewal()
  }

  stopRenewal(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Reads the record again after an error: a store without an answer may have made the change. */
  async #replace(
    previous: PaymentRecord,
    entry: PaymentRecord,
    joint: JointCommit | undefined,
  ): Promise<boolean> {
    try {
      if (joint === undefined) return await this.#ledger.replace(previous, entry)
      await joint.store({ previous, next: entry })
      return true
    } catch (fault) {
      if (fault instanceof CommitAbandonedError) throw fault
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
    joint?: JointCommit,
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
      if (!(await this.#replace(previous, entry, joint))) throw new LeaseLostError(previous.id)
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

/** Reserves a payment for one purchase before any work is done for it; atomic across all processes. */
export async function reserve(
  { ledger, owner, now }: LeaseContext,
  purchase: Purchase,
): Promise<Reservation> {
  let entry = newRecord(purchase, owner, now(), LEASE_MS)
  for (;;) {
    const standing = await ledger.insert(entry)
    if (standing === undefined) return { kind: 'claimed', claim: new PaymentLease(ledger, entry, now) }
    if (!isReusable(standing, now())) return { kind: 'taken', entry: standing }
    // An expired reservation frees its key and its identifier for the next request.
    if (standing.key === entry.key)
      entry = { ...entry, attempts: standing.attempts + 1, version: standing.version + 1 }
    await ledger.remove(standing)
  }
}

/** Takes over a record whose owner has died; undefined when it has not, or another process was faster. */
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

/** Nothing was charged, no answer is stored and no process holds it: the payment may be used as if it were new. */
export function isReusable(entry: PaymentRecord, now: number): boolean {
  if (entry.pendingWrite !== undefined) return false
  return entry.state === 'voided' || (entry.state === 'reserved' && !isLeased(entry, now))
}

const LOCK_MS = 15_000
const RETRY_MS = 50
/** Longer than a lease, so that the lease of a dead process expires in the meantime. */
export const ACQUIRE_TIMEOUT_MS = 20_000
/** How long a busy process keeps the lock while others wait. */
const TURN_MS = 1_000

export interface LockSettings extends LeaseContext {
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

  /**
   * Releases the lock to a waiting process after a long time: a busy process would never end its own. Never throws.
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
