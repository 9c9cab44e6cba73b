import type { AnswerStore } from './answers.ts'
import type { DailyCounts } from './daily-counts.ts'
import type { PaymentRecord } from './payment-record.ts'
import type { SalesTotals } from './sales-totals.ts'
import type { SchemeStateChange, SchemeStates } from './scheme-state.ts'
import type { SearchPlace, SearchTerm } from './search-term.ts'
import type { Queue } from './payment-lifecycle.ts'

/**
 * Where payments are kept. Every change is a compare-and-set on the record's version, durable when its promise resolves,
 * so that any number of processes may work on one store; one that rejects has not been made, as far as can be known.
 * All rules of the payment’s life are above it, in `payment-lifecycle.ts` and `lease.ts`. What it gives out is a copy.
 * All times are milliseconds since the epoch. `test/contract/ledger.ts` says what an implementation has to do.
 */
export interface Ledger {
  /** Name for people: `lmdb`, `redis`. */
  readonly name: string
  /** The answers that payments have bought. */
  readonly answers: AnswerStore
  /** The clock of all leases, the same for all processes: milliseconds since the epoch. */
  readonly now: () => number
  /**
   * Rejects with `LedgerError` when the store answers and must not be trusted with new payments: somebody has changed
   * its settings, or, with `LedgerLostError`, it was emptied or replaced. `insert`, `addExpiring` and `listExpiring`
   * reject then, too. Once an operator has reopened a lost store, every process goes on with it.
   */
  check(): Promise<void>
  get(key: string): Promise<PaymentRecord | undefined>
  /** By public id: `paymentId` of its key. */
  find(id: string): Promise<PaymentRecord | undefined>
  /** Stores a new record and resolves to undefined, or to the existing record with its key or identifier. */
  insert(record: PaymentRecord): Promise<PaymentRecord | undefined>
  /** What schemes keep between payments. */
  readonly states: SchemeStates
  /**
   * Makes all changes or none; false when another process has changed one of the records or states, or has stored a record
   * with the key or the identifier of a new one. Rejects for a new record as `insert` does.
   */
  commit(changes: readonly (Change | Addition)[], states?: readonly SchemeStateChange[]): Promise<boolean>
  /** Commits one change. */
  replace(previous: PaymentRecord, next: PaymentRecord): Promise<boolean>
  /** Like `replace`, but may wait up to 0.1 s for another change, to be made in one commit with it. */
  replaceSoon(previous: PaymentRecord, next: PaymentRecord): Promise<boolean>
  /** Commits the deletion of one record. */
  remove(record: PaymentRecord): Promise<boolean>
  /** Every record, oldest first. */
  records(): AsyncIterable<PaymentRecord>
  /**
   * The payments that are found by a term, all without one: newest first, `limit` at most, those after `before` in this
   * order.
   */
  search(term: SearchTerm | undefined, limit: number, before?: SearchPlace): Promise<readonly PaymentRecord[]>
  /** What payments have brought by day. */
  readonly totals: SalesTotals
  /** What is counted by day besides payments. */
  readonly counts: DailyCounts
  /** Records of a queue that are due at `now`, longest overdue first, `limit` at most. */
  due(queue: Queue, now: number, limit: number): Promise<readonly PaymentRecord[]>
  /**
   * Purchases of a buyer (`buyerKey`) since a time that were worked for, charged or perhaps charged, and whose answer
   * is not known to have arrived: newest first, `limit` at most.
   */
  undelivered(buyer: string, since: number, limit: number): Promise<readonly PaymentRecord[]>
  /**
   * Keeps a fact under a name until a time, for every process; the same fact again only moves its end. Resolves to the
   * number of facts that are kept under the name then: of several first facts that are added at once, one alone gets 1.
   */
  addExpiring(name: string, fact: string, until: number): Promise<number>
  /**
   * Keeps an amount under a name until a time, unless the amounts that are unexpired at `now` would then exceed a
   * limit. Resolves to undefined, or to the time at which enough of them have expired. An id that is kept already stays
   * as it is. An amount is a fact (`factOf`), so that `addExpiring` can end it. Amounts under one name are added one
   * after the other, whichever processes add them.
   */
  addWithinLimit(
    name: string,
    amount: LimitedAmount,
    limit: AmountLimit,
    now: number,
  ): Promise<number | undefined>
  /** The unexpired facts under a name at `now`, in no order. */
  listExpiring(name: string, now: number): Promise<readonly string[]>
  /**
   * Takes or renews the lease `name` for `owner` until `until`; undefined when another owner holds it. A store with a
   * clock of its own uses only the difference of the two times. A lease that seems to have begun in the future was
   * written by a wrong clock: it ends one lease length from now.
   */
  lease(name: string, owner: string, now: number, until: number): Promise<Lease | undefined>
  /** Releases the lease and stores `left` for the next holder; without effect once another process holds it. */
  release(lease: Lease, left: LeaseState | undefined): Promise<void>
  /**
   * Declares the store to be good as it is now: processes that have found it lost go on with it. For operators, after
   * they have compared it with the chain.
   */
  reopen(): Promise<void>
  /** May be called repeatedly; no other call may follow it. */
  close(): Promise<void>
}

/**
 * One compare-and-set: `next` takes the place of `previous`, or nothing does. `next.version` is `previous.version + 1`;
 * key and time of creation stay, and the identifier stays or goes. No record is in one commit twice. `previous` is what the
 * store had, not what it may have missed: the totals change by the difference.
 */
export interface Change {
  readonly previous: PaymentRecord
  readonly next: PaymentRecord | undefined
}

/** A new record. */
export interface Addition {
  readonly previous: undefined
  readonly next: PaymentRecord
}

/** A record that is stored with its first change is for an observer one that was reserved before. */
export function asChange(change: Change | Addition): Change {
  if (change.previous !== undefined) return change
  const { receipt: _receipt, ...reserved } = change.next
  return { previous: { ...reserved, state: 'reserved' }, next: change.next }
}

/** One of the amounts under a name. */
export interface LimitedAmount {
  /** Unique under the name, without spaces. */
  readonly id: string
  readonly value: bigint
  /** When it stops counting, in milliseconds since the epoch. */
  readonly until: number
}

/** What the amounts under one name may come to. */
export interface AmountLimit {
  readonly count: number
  /** Undefined: no limit on the sum. */
  readonly sum: bigint | undefined
}

/** The fact that an amount is kept as: once `addExpiring` has ended it, it no longer counts. */
export function factOf({ id, value }: Pick<LimitedAmount, 'id' | 'value'>): string {
  return `${id} ${value}`
}

/** State that the holder of a lease leaves to the next. */
export interface LeaseState {
  /** For a signer, the next account nonce. */
  readonly value: number
  /** When the value was last known to be right, in milliseconds since the epoch. */
  readonly at: number
}

/** A right that one owner at a time has, by name, until it expires; `fencingToken` grows with every owner, so that a late one is recognised. */
export interface Lease {
  readonly name: string
  readonly owner: string
  readonly fencingToken: number
  readonly leaseState: LeaseState | undefined
}
