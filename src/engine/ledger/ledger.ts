import type { AnswerStore } from './answers.ts'
import type { PaymentRecord } from './payment-record.ts'
import type { Queue } from './payment-lifecycle.ts'

/**
 * Where payments are kept. Every change is a compare-and-set on the entry's version, durable when its promise resolves,
 * so that any number of processes may work on one store; one that rejects has not been made, as far as can be known. All
 * rules of the payment’s life are above it, in `payment-lifecycle.ts` and `lease.ts`.
 * What it gives out is a copy. `test/contract/ledger.ts` says what an implementation has to do.
 */
export interface Ledger {
  /** For people: `lmdb`, `redis`. */
  readonly name: string
  /** What the payments have bought. */
  readonly answers: AnswerStore
  /** The clock by which leases are measured, the same for all processes: milliseconds since the epoch. */
  readonly now: () => number
  /**
   * Rejects with `LedgerError` when the store is there and must not be trusted with new payments: somebody has deleted
   * its files or changed its settings. `insert`, `remember` and `recall` reject then, too; what is under way goes on.
   */
  check(): Promise<void>
  get(key: string): Promise<PaymentRecord | undefined>
  /** By public id: `paymentId` of its key. */
  find(id: string): Promise<PaymentRecord | undefined>
  /** Stores a new entry and resolves to undefined; else to the one in its way, which has its key or its identifier. */
  insert(entry: PaymentRecord): Promise<PaymentRecord | undefined>
  /** Makes all changes or none; false when somebody else has changed one of the entries. */
  commit(changes: readonly Change[]): Promise<boolean>
  /** A commit of one change. */
  replace(previous: PaymentRecord, next: PaymentRecord): Promise<boolean>
  /** A commit that forgets one entry. */
  remove(entry: PaymentRecord): Promise<boolean>
  /** Every entry, oldest first. */
  entries(): AsyncIterable<PaymentRecord>
  /** Entries of a queue whose `due` has come by `now`, longest overdue first, `limit` at most. */
  due(queue: Queue, now: number, limit: number): Promise<readonly PaymentRecord[]>
  /**
   * What was worked for a buyer since a time, or paid by it, or perhaps, and is not known to have arrived: newest first,
   * `limit` at most.
   */
  undelivered(buyer: string, since: number, limit: number): Promise<readonly PaymentRecord[]>
  /**
   * Keeps a fact under a name until a time, for every process; the same fact again only moves its end. Resolves to the
   * number of facts that are kept under the name then: of several that are new at once, one alone makes it 1.
   */
  addExpiring(name: string, fact: string, until: number): Promise<number>
  /** The facts under a name whose end has not come at `now`, in no order. */
  listExpiring(name: string, now: number): Promise<readonly string[]>
  /**
   * Takes or renews the lease `name` for `owner` until `until`; undefined when another owner holds it. A store with a
   * clock of its own takes the length from the two times and nothing else. A lease that seems to have begun in the
   * future, by a clock that was wrong, ends its length after now.
   */
  lease(name: string, owner: string, now: number, until: number): Promise<Lease | undefined>
  /** Gives the lease back and remembers `left` for the next holder; without effect once somebody has taken it over. */
  release(lease: Lease, left: LeaseState | undefined): Promise<void>
  /** May be called again; nothing else may be called after it. */
  close(): Promise<void>
}

/**
 * One compare-and-set: `next` takes the place of `previous`, or nothing does. `next.version` is `previous.version + 1`;
 * key, buyer and time of creation stay, and the identifier stays or goes. No entry is in one commit twice.
 */
export interface Change {
  readonly previous: PaymentRecord
  readonly next: PaymentRecord | undefined
}

/** What the holder of a lease leaves to the next. */
export interface LeaseState {
  /** For a signer, the next account nonce. */
  readonly value: number
  /** When the value was known to be right: milliseconds since the epoch. */
  readonly at: number
}

/** Exclusive use of a named thing for a while; `fence` grows with every holder, so that a late one is recognised. */
export interface Lease {
  readonly name: string
  readonly owner: string
  readonly fencingToken: number
  readonly leaseState: LeaseState | undefined
}
