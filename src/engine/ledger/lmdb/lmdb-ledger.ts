import { join } from 'node:path'
import { openAnswerFiles } from '../answer-files.ts'
import { openLmdbAnswers } from './lmdb-answers.ts'
import type { PaymentRecord } from '../payment-record.ts'
import type { Addition, Change, Ledger, Lease, LeaseState } from '../ledger.ts'
import { followReopening } from './lmdb-reopening.ts'
import { unusable } from './lmdb-file.ts'
import { paymentId, paymentOrderOf, redact, withPaymentOrder, casToken } from '../payment-lifecycle.ts'
import { decodeRecord, encodeRecord } from '../record-codec.ts'
import { LedgerError } from '../../base/errors.ts'
import type { Store } from './lmdb-store.ts'
import { openDirectory, openStore } from './lmdb-store.ts'
import { openCommits } from './lmdb-commits.ts'
import { openFacts } from './lmdb-facts.ts'
import { openStates } from './lmdb-states.ts'
import { openCounts } from './lmdb-counts.ts'
import { openTotals } from './lmdb-totals.ts'
import { fitsSearch } from '../search-term.ts'
import type { SchemeStateChange } from '../scheme-state.ts'
import type { Age } from './lmdb-indexes.ts'
import { openIndexes, PAGE } from './lmdb-indexes.ts'

interface Held {
  readonly owner: string
  readonly until: number
  /** Milliseconds. */
  readonly length: number
  readonly fence: number
  readonly left?: LeaseState | undefined
}

interface Made {
  /** The record as the store has it; undefined for a new one. */
  readonly standing: PaymentRecord | undefined
  readonly next: PaymentRecord | undefined
}

/**
 * The embedded ledger: shared by all processes of one machine, flushed to disk before a promise resolves.
 * Not for network disks, where LMDB's locks do not hold. A process opens a directory once.
 *
 * Throws `LedgerError` when the directory cannot be used or holds a store of another format.
 */
export async function openLmdbLedger(directory: string): Promise<Ledger> {
  return followReopening(await openFiles(directory), () => openFiles(directory))
}

async function openFiles(directory: string): Promise<Ledger> {
  const opening = openDirectory(directory)
  try {
    return openLedger(directory, await openStore(directory, opening))
  } catch (fault) {
    await opening.close()
    throw fault instanceof LedgerError ? fault : unusable(directory, fault)
  }
}

function openLedger(directory: string, { root, check, reopen, checkFormat, close }: Store): Ledger {
  // By public id, which is short and plain, unlike the key.
  const payments = root.openDB<string, string>({ name: 'payments', encoding: 'string' })
  // Separate from the records: pages that once held a long value stay half empty after its deletion.
  const orders = root.openDB<string, string>({ name: 'orders', encoding: 'string' })
  const leases = root.openDB<Held, string>({ name: 'leases', encoding: 'json' })
  const indexes = openIndexes(root)
  const facts = openFacts(root)
  const states = openStates(root)
  const totals = openTotals(root)
  const counts = openCounts(root)

  const { change, join: joinNext, close: closeCommits } = openCommits(root, checkFormat)
  const read = (id: string): PaymentRecord | undefined => {
    const text = payments.get(id)
    if (text === undefined) return undefined
    const { dispatch, ...record } = decodeRecord(text)
    if (dispatch === undefined) return record
    const order = orders.get(id)
    return { ...record, dispatch: order === undefined ? dispatch : withPaymentOrder(dispatch, order) }
  }
  /** Stored texts: a record whose text is unchanged need not be decoded for a comparison. */
  const texts = new WeakMap<PaymentRecord, string>()
  const put = (previous: PaymentRecord | undefined, next: PaymentRecord): void => {
    const { dispatch } = next
    const text = encodeRecord(dispatch === undefined ? next : { ...next, dispatch: redact(dispatch) })
    texts.set(next, text)
    void payments.put(next.id, text)
    const order = paymentOrderOf(dispatch)
    if (order !== paymentOrderOf(previous?.dispatch))
      void (order === undefined ? orders.remove(next.id) : orders.put(next.id, order))
    indexes.move(previous, next)
    totals.change(previous, next)
  }
  const found = (ids: readonly string[]): PaymentRecord[] => ids.flatMap((id) => read(id) ?? [])
  /** The record that has the key or the identifier of a new one. */
  const standingFor = (record: PaymentRecord): PaymentRecord | undefined =>
    found([record.id, ...indexes.identified(record)])[0]
  /** To be called in a transaction. */
  const make = (
    changes: readonly (Change | Addition)[],
    stateChanges: readonly SchemeStateChange[],
  ): boolean => {
    if (!stateChanges.every(({ previous }) => states.get(previous.name).version === previous.version))
      return false
    const made = changes.flatMap(({ previous, next }): Made[] => {
      if (previous === undefined) return standingFor(next) === undefined ? [{ standing: previous, next }] : []
      if (payments.get(previous.id) === (texts.get(previous) ?? '')) return [{ standing: previous, next }]
      const standing = read(previous.id)
      return standing !== undefined && casToken(standing) === casToken(previous) ? [{ standing, next }] : []
    })
    if (made.length < changes.length) return false
    for (const each of stateChanges) states.change(each)
    for (const { standing, next } of made) {
      if (next !== undefined) put(standing, next)
      else if (standing !== undefined) {
        void payments.remove(standing.id)
        void orders.remove(standing.id)
        indexes.move(standing, undefined)
        totals.change(standing, undefined)
      }
    }
    return true
  }
  /** Makes a change in a store that may be trusted with new payments. */
  const changeTrusted = async <T>(work: () => T): Promise<T> => {
    check()
    return change(work)
  }
  const commitAll: Ledger['commit'] = (changes, states = []) => {
    const isNew = changes.some(({ previous }) => previous === undefined)
    return (isNew ? changeTrusted : change)(() => make(changes, states))
  }

  return {
    name: 'lmdb',
    answers: openLmdbAnswers({
      values: root.openDB({ name: 'answers', encoding: 'binary' }),
      change,
      join: (work) => joinNext(JOINED_MS, work),
      now: () => Date.now(),
      files: openAnswerFiles(join(directory, 'answers')),
    }),
    now: () => Date.now(),
    check: async () => check(),
    get: async (key) => read(paymentId(key)),
    find: async (id) => read(id),
    insert: (record) =>
      changeTrusted(() => {
        const standing = standingFor(record)
        if (standing === undefined) put(undefined, record)
        return standing
      }),
    states: {
      get: async (name) => states.get(name),
      list: async function* (prefix) {
        yield* states.list(prefix)
      },
    },
    commit: commitAll,
    replace: (previous, next) => commitAll([{ previous, next }]),
    replaceSoon: async (previous, next) => {
      let isMade = false
      await joinNext(JOINED_MS, () => {
        isMade = make([{ previous, next }], [])
      })
      return isMade
    },
    remove: (record) => commitAll([{ previous: record, next: undefined }]),
    records: async function* () {
      let last: Age | undefined
      for (;;) {
        const ages = indexes.after(last, PAGE)
        if (ages.length === 0) return
        for (const age of ages) {
          last = age
          yield* found([age[1]])
        }
      }
    },
    search: async (term, limit, before) =>
      found(indexes.search(term, limit, before)).filter((record) => fitsSearch(record, term)),
    totals: {
      read: (kind, from, to) => totals.read(kind, from, to),
      rebuild: async () => {
        let records = 0
        let from = await change(() => totals.begin())
        for (;;) {
          const page = indexes.since(from + 1, REBUILT_AT_ONCE)
          const until = page.at(-1)?.[0]
          if (until === undefined) break
          // A payment that comes with an earlier time is counted by its own commit.
          const counted = await change(() => {
            const ids = indexes.between(from + 1, until)
            return totals.count(found(ids), from, until) ? ids.length : undefined
          })
          if (counted !== undefined) records += counted
          from = counted === undefined ? await change(() => totals.begin()) : until
        }
        await change(() => totals.finish(from))
        while (await change(() => totals.clearOld()));
        return records
      },
    },
    counts: {
      add: (date, added) => joinNext(JOINED_MS, () => counts.add(date, added)),
      read: async (first, last) => counts.read(first, last),
    },
    due: async (queue, now, limit) => found(indexes.due(queue, now, limit)),
    undelivered: async (buyer, since, limit) => found(indexes.undelivered(buyer, since, limit)),
    addExpiring: (name, fact, until) => changeTrusted(() => facts.addExpiring(name, fact, until)),
    addWithinLimit: (name, amount, limit, now) =>
      changeTrusted(() => facts.addWithinLimit(name, amount, limit, now)),
    listExpiring: async (name, now) => {
      check()
      // Nobody waits for it: those that have expired are not listed.
      if (facts.haveEnded(now)) joinNext(FORGOTTEN_MS, () => facts.forget(now)).catch(() => undefined)
      return facts.listExpiring(name, now)
    },
    lease: (name, owner, now, until) =>
      change((): Lease | undefined => {
        const held = leases.get(name)
        if (held !== undefined && held.owner !== owner && held.until > now) {
          if (held.until - held.length > now) void leases.put(name, { ...held, until: now + held.length })
          return undefined
        }
        const fence = held?.owner === owner ? held.fence : (held?.fence ?? 0) + 1
        const left = held?.left
        void leases.put(name, { owner, until, length: until - now, fence, left })
        return { name, owner, fencingToken: fence, leaseState: left }
      }),
    release: ({ name, fencingToken: fence }, left) =>
      joinNext(JOINED_MS, () => {
        if (leases.get(name)?.fence === fence)
          void leases.put(name, { owner: '', until: 0, length: 0, fence, left })
      }),
    reopen,
    close: async () => {
      await closeCommits()
      await close()
    },
  }
}

/** How long changes that others may have to wait for are kept for the next commit. */
const JOINED_MS = 100
/** The same for the deletion of facts that nobody sees any more. */
const FORGOTTEN_MS = 60_000

/** Records of one transaction while totals are worked out again. */
const REBUILT_AT_ONCE = 200
