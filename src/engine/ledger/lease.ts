import type { Every } from '../base/every.ts'
import { FIRST_LOOK_MS, LEASE_MS } from '../base/money-times.ts'
import { deleteAnswer, readAnswer, writeAnswer, writeStream } from './answers.ts'
import type {
  AnswerHead,
  AnswerReference,
  BlockReference,
  PaymentRecord,
  Purchase,
  Receipt,
  Refund,
  Reserved,
  State,
  StoredAnswer,
} from './payment-record.ts'
import type { Addition, Ledger } from './ledger.ts'
import type { SchemeStateChange } from './scheme-state.ts'
import {
  newRecord,
  closed,
  firstLook,
  isLeased,
  nextCheckAt,
  casToken,
  voided,
  type Unscheduled,
} from './payment-lifecycle.ts'
import type { JointCommit } from './joint-commit.ts'
import { CommitAbandonedError } from './joint-commit.ts'
import { encodeRecord } from './record-codec.ts'

/** Another process has taken over the payment: all further changes by this one are void. */
export class LeaseLostError extends Error {
  constructor(id: string) {
    super(`another process has taken over payment ${id}`)
    this.name = 'LeaseLostError'
  }
}

/** A state that a scheme keeps was changed by another payment: nothing of the commit was stored. */
export class StateChangedError extends Error {
  constructor(name: string) {
    super(`another payment has changed the state ${name}`)
    this.name = 'StateChangedError'
  }
}

export interface Changes extends Partial<
  Pick<PaymentRecord, 'dispatch' | 'receipt' | 'pendingWrite' | 'runs' | 'amount' | 'usage'>
> {
  readonly answer?: StoredAnswer
}

/** A change that deletes nothing. */
interface RecordChange {
  readonly previous: PaymentRecord
  readonly next: PaymentRecord
}

/** Stores a change, alone or in one commit with others; false when the record is another process’s. */
type StoreChange = (change: RecordChange | Addition) => Promise<boolean>

/**
 * One process's hold on one payment: the only way records change. Changes are made one after the other, each durable
 * before the next begins, and the lease is renewed until its renewal is stopped. After that nothing writes to the record
 * any more, so that the record handed out last is the one that is stored.
 */
export class PaymentLease {
  readonly #ledger: Ledger
  readonly #now: () => number
  readonly #every: Every
  #record: PaymentRecord
  /** The record as the store has it; undefined before its first change stores it. */
  #stored: PaymentRecord | undefined
  /** What was written last, if the store has not said whether it has it. */
  #unconfirmed: PaymentRecord | undefined
  #answer: StoredAnswer | undefined
  #last: Promise<unknown> = Promise.resolve()
  #changing = 0
  #stop: (() => void) | undefined

  /** `stored`: the record as the store has it. Undefined: a new one, which is stored with its first change. */
  constructor(
    { ledger, now, every }: LeaseContext,
    record: PaymentRecord,
    stored: PaymentRecord | undefined,
  ) {
    this.#ledger = ledger
    this.#record = record
    this.#stored = stored
    this.#now = now
    this.#every = every
    if (stored !== undefined) this.startRenewal()
  }

  /** Begins by itself when the record is stored already. A new record is stored by the first renewal at the latest. */
  startRenewal(): void {
    this.#stop ??= this.#every(LEASE_MS / 3, () => this.#renew())
  }

  /** Whether the store has a record of it. */
  get isStored(): boolean {
    return this.#stored !== undefined
  }

  #renew(): void {
    // Every change renews the lease; a renewal after the last change would alter the record that was handed out.
    if (this.#changing > 0) return
    this.#change({}).catch((fault: unknown) => {
      // A store that is unavailable now may be back at the next renewal; a lost lease stays lost.
      if (fault instanceof LeaseLostError) this.stopRenewal()
    })
  }

  get record(): PaymentRecord {
    return this.#record
  }

  /** Throws `LeaseLostError` when another process has taken over. */
  advance(state: State, changes: Changes = {}): Promise<PaymentRecord> {
    return this.update(changes, state)
  }

  /** Like `advance` to `settling`, in one commit with other payments if there are any. */
  dispatch(changes: Changes, joint?: JointCommit): Promise<PaymentRecord> {
    const store =
      joint &&
      (async (change: RecordChange | Addition) => {
        await joint.store(change)
        return true
      })
    return this.#update(changes, 'settling', store)
  }

  /** Records an event, with a change of state if one is given. */
  update(changes: Changes, state?: State): Promise<PaymentRecord> {
    return this.#update(changes, state)
  }

  #update({ answer, ...changes }: Changes, state?: State, store?: StoreChange): Promise<PaymentRecord> {
    return this.#write(
      async (record) => ({
        ...record,
        ...changes,
        ...(state && { state }),
        ...(answer && { answer: await this.#writeAnswer(record, answer) }),
      }),
      LEASE_MS,
      store,
    )
  }

  async #writeAnswer(record: PaymentRecord, answer: StoredAnswer): Promise<AnswerReference> {
    const reference = await writeAnswer(this.#ledger.answers, record, answer)
    this.#answer = answer
    return reference
  }

  /**
   * Stores a stream while it arrives, outside of the queue of changes: the lease is renewed meanwhile. `changes`: what its
   * end decides.
   */
  async storeStream(
    head: AnswerHead,
    chunks: AsyncIterable<Uint8Array>,
    changes: () => Omit<Changes, 'answer'> = () => ({}),
  ): Promise<PaymentRecord> {
    const answer = await writeStream(this.#ledger.answers, this.#record, head, chunks)
    return this.#change({ ...changes(), state: 'fulfilled', answer })
  }

  /** The stored answer; undefined when there is none or it was lost: then the handler must run again. */
  async readAnswer(): Promise<StoredAnswer | undefined> {
    if (this.#record.answer === undefined) return undefined
    return (this.#answer ??= await readAnswer(this.#ledger.answers, this.#record))
  }

  /** The handler's pending write is committed or aborted. */
  clearPending(): Promise<PaymentRecord> {
    return this.#write(({ pendingWrite: _pendingWrite, ...record }) => record, LEASE_MS)
  }

  /** Nothing was sent that could move money: the stored answer waits for the same payment. */
  async keepForRetry(): Promise<void> {
    await this.#write(({ dispatch: _dispatch, ...record }) => ({ ...record, state: 'fulfilled' }), 0)
    this.stopRenewal()
  }

  /** Deletes the answer after the redelivery period, and keeps the record. */
  purgeAnswer(): Promise<PaymentRecord> {
    return this.#withoutAnswer((record) => ({ ...closed(record), owner: record.owner }), 0)
  }

  /** The money has moved. What was sent is kept until its block is final, in case of a reorganization. */
  settle(receipt: Receipt): Promise<PaymentRecord> {
    const settledAt = this.#now()
    const settled = { receipt, settledAt, ...firstLook(this.#record, receipt.block, settledAt) }
    return this.#write(
      ({ undone, failedIn: _failedIn, lookAt: _lookAt, ...record }) => ({
        ...record,
        state: undone?.state ?? 'settled',
        ...settled,
      }),
      LEASE_MS,
    )
  }

  /**
   * Charges a payment in the ledger: its receipt, its answer if there is one, and the state of its channel are stored in
   * one commit. Throws `StateChangedError` when another payment has changed that state.
   */
  charge(
    { answer, receipt, ...changes }: Changes & Pick<Required<Changes>, 'receipt'>,
    state: SchemeStateChange,
  ): Promise<PaymentRecord> {
    return this.#write(
      async (record) => {
        const settledAt = this.#now()
        const look = firstLook(record, receipt.block, settledAt)
        return {
          ...record,
          ...changes,
          ...(answer && { answer: await this.#writeAnswer(record, answer) }),
          receipt,
          settledAt,
          ...look,
          state: 'settled',
        }
      },
      LEASE_MS,
      (change) => this.#storeWith(change, state),
    )
  }

  async #storeWith(change: RecordChange | Addition, state: SchemeStateChange): Promise<boolean> {
    if (await this.#ledger.commit([change], [state])) return true
    const standing = await this.#ledger.get(change.next.key)
    // The record is as it was, so it is the state that is not.
    if (tokenOf(standing) === tokenOf(change.previous)) throw new StateChangedError(state.previous.name)
    return false
  }

  /** Another block contains the transaction, or another transaction the payment. */
  move(receipt: Receipt): Promise<PaymentRecord> {
    return this.#change({ receipt, ...firstLook(this.#record, receipt.block, this.#now()) })
  }

  /** No block contains the payment any more: whether it is charged is unknown again. */
  undo(): Promise<PaymentRecord> {
    return this.#write(({ receipt, lookAt: _lookAt, settledAt: _settledAt, ...record }) => {
      const undone = { state: record.state, transaction: receipt?.transaction ?? '' }
      return { ...record, state: 'unknown', undone }
    }, LEASE_MS)
  }

  /** Records a refund: the payment is no longer answered. */
  refund(refund: Refund): Promise<PaymentRecord> {
    return this.#change({ refund, redeliver: 0 })
  }

  /** What was sent has failed in a block; the record says so until that block is final. */
  failedIn(block: BlockReference): Promise<PaymentRecord> {
    return this.#change({ failedIn: block })
  }

  /** The outcome is open: it is looked at again soon. */
  lookAgain(): Promise<PaymentRecord> {
    return this.#change({ lookAt: this.#now() + FIRST_LOOK_MS })
  }

  /** Nothing was or will be charged: deletes the answer and everything that was signed. */
  void(): Promise<PaymentRecord> {
    return this.#withoutAnswer((record) => voided(record, this.#now()), LEASE_MS)
  }

  async #withoutAnswer(
    change: (record: PaymentRecord) => Unscheduled,
    leaseMs: number,
  ): Promise<PaymentRecord> {
    const { id, answer } = this.#record
    const record = await this.#write(change, leaseMs)
    this.#answer = undefined
    if (answer !== undefined) await deleteAnswer(this.#ledger.answers, id, answer)
    return record
  }

  /**
   * Deletes the record of a payment that bought nothing and moved nothing; voids it when what was sent for it earlier
   * might still be carried out. Throws `LeaseLostError` when another process has taken over.
   */
  async delete(): Promise<void> {
    this.stopRenewal()
    await this.#last
    const { id, answer, failedIn } = await this.#current()
    if (failedIn !== undefined) {
      await this.void()
      return
    }
    if (this.#stored !== undefined && !(await this.#ledger.remove(this.#stored))) throw new LeaseLostError(id)
    if (answer !== undefined) await deleteAnswer(this.#ledger.answers, id, answer)
  }

  /** Releases the lease at once and leaves the record unchanged. */
  async release(): Promise<void> {
    await this.#change({}, 0)
    this.stopRenewal()
  }

  stopRenewal(): void {
    this.#stop?.()
    this.#stop = undefined
  }

  /** The record as the store has it. */
  async #current(): Promise<PaymentRecord> {
    if (this.#unconfirmed !== undefined && (await this.#storeHas(this.#unconfirmed)))
      this.#record = this.#stored = this.#unconfirmed
    this.#unconfirmed = undefined
    return this.#record
  }

  /**
   * Compares all of the record: two changes of which the store has confirmed neither have the same version, and the
   * first, such as a renewal, is no sign that it has the second, such as a receipt.
   */
  async #storeHas(record: PaymentRecord): Promise<boolean> {
    const standing = await this.#ledger.get(record.key)
    return standing !== undefined && encodeRecord(standing) === encodeRecord(record)
  }

  /** Reads the record again after an error: a store without an answer may have made the change. */
  async #replace(
    previous: PaymentRecord | undefined,
    record: PaymentRecord,
    store: StoreChange = (change) =>
      change.previous === undefined
        ? this.#ledger.commit([change])
        : this.#ledger.replace(change.previous, change.next),
  ): Promise<boolean> {
    try {
      return await store({ previous, next: record })
    } catch (fault) {
      if (fault instanceof CommitAbandonedError || fault instanceof StateChangedError) throw fault
      if (await this.#storeHas(record).catch(() => false)) return true
      this.#unconfirmed = record
      throw fault
    }
  }

  #change(changes: Partial<PaymentRecord>, leaseMs: number = LEASE_MS): Promise<PaymentRecord> {
    return this.#write((record) => ({ ...record, ...changes }), leaseMs)
  }

  #write(
    change: (record: PaymentRecord) => Unscheduled | Promise<Unscheduled>,
    leaseMs: number,
    store?: StoreChange,
  ): Promise<PaymentRecord> {
    const writing = this.#last.then(async () => {
      const previous = await this.#current()
      const next = await change(previous)
      const now = this.#now()
      const changed = {
        ...next,
        leaseUntil: now + leaseMs,
        updatedAt: now,
        version: previous.version + 1,
      }
      const record: PaymentRecord = { ...changed, due: nextCheckAt(changed) }
      if (!(await this.#replace(this.#stored, record, store))) throw new LeaseLostError(previous.id)
      this.#record = this.#stored = record
      return record
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

function tokenOf(record: PaymentRecord | undefined): string | undefined {
  return record && casToken(record)
}

type Reservation =
  | { readonly kind: 'reserved'; readonly lease: PaymentLease }
  | { readonly kind: 'taken'; readonly record: PaymentRecord }

/** A ledger, and who uses it. */
export interface LedgerAccess {
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  readonly now: () => number
}

export interface LeaseContext extends LedgerAccess {
  readonly every: Every
}

/**
 * Reserves a payment for one purchase before any work is done for it; atomic across all processes, unless its record is
 * stored later: then the lock of the payment keeps others away.
 */
export async function reserve(
  context: LeaseContext,
  purchase: Purchase,
  reserved: Reserved = 'before the work',
): Promise<Reservation> {
  const { ledger, owner, now } = context
  let record = newRecord(purchase, owner, now(), LEASE_MS)
  const isLater = reserved === 'with the first change' && purchase.identifier === undefined
  if (isLater && (await ledger.get(record.key)) === undefined)
    return { kind: 'reserved', lease: new PaymentLease(context, record, undefined) }
  for (;;) {
    const standing = await ledger.insert(record)
    if (standing === undefined) return { kind: 'reserved', lease: new PaymentLease(context, record, record) }
    if (!isReusable(standing, now())) return { kind: 'taken', record: standing }
    // An expired reservation frees its key and its identifier for the next request.
    const { key, attempts, failedIn } = standing
    const version = standing.version + 1
    if (key === record.key) {
      record = { ...record, attempts: attempts + 1, version, ...(failedIn && { failedIn }) }
      await ledger.remove(standing)
    } else if (failedIn === undefined) await ledger.remove(standing)
    else {
      const left = { ...voided(standing, now()), version }
      await ledger.replace(standing, { ...left, due: nextCheckAt(left) })
    }
  }
}

/** Takes over a record whose owner has died; undefined when it has not, or another process was faster. */
export async function acquireExpired(
  context: LeaseContext,
  record: PaymentRecord,
): Promise<PaymentLease | undefined> {
  const { ledger, owner, now } = context
  const time = now()
  if (isLeased(record, time)) return undefined
  const taken = {
    ...record,
    owner,
    leaseUntil: time + LEASE_MS,
    attempts: record.attempts + 1,
    updatedAt: time,
    version: record.version + 1,
  }
  const next = { ...taken, due: nextCheckAt(taken) }
  return (await ledger.replace(record, next)) ? new PaymentLease(context, next, next) : undefined
}

/** Nothing was charged, no answer is stored and no process holds it: the payment may be used as if it were new. */
export function isReusable(record: PaymentRecord, now: number): boolean {
  if (record.pendingWrite !== undefined) return false
  return record.state === 'voided' || (record.state === 'reserved' && !isLeased(record, now))
}
