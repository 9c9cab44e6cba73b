import { join } from 'node:path'
import { openAnswerFiles } from './answer-files.ts'
import type { Entry } from './entry.ts'
import { paymentId, type Change, type Ledger, type Lease, type Left } from './ledger.ts'
import { openFacts } from './lmdb-facts.ts'
import { openIndexes, type Age } from './lmdb-indexes.ts'
import { paymentOrderOf, redact, withPaymentOrder } from './lifecycle.ts'
import { commit, openStore } from './lmdb-store.ts'
import { casToken, decodeRecord, encodeRecord } from './record-codec.ts'

interface Held {
  readonly owner: string
  readonly until: number
  /** Milliseconds. */
  readonly length: number
  readonly fence: number
  readonly left?: Left | undefined
}

/**
 * The embedded ledger: shared by all processes of one machine, flushed to disk before a promise resolves.
 * Not for network disks, where LMDB's locks do not hold. A process opens a directory once.
 *
 * Throws `LedgerError` when the directory cannot be used or holds a store of another format.
 */
export async function openLmdbLedger(directory: string): Promise<Ledger> {
  const { root, check, checkFormat, close } = await openStore(directory)
  // By public id, which is short and plain whatever the key is.
  const payments = root.openDB<string, string>({ name: 'payments', encoding: 'string' })
  // Apart from the records: pages that have once held a long value stay half empty when it goes.
  const orders = root.openDB<string, string>({ name: 'orders', encoding: 'string' })
  const leases = root.openDB<Held, string>({ name: 'leases', encoding: 'json' })
  const indexes = openIndexes(root)
  const facts = openFacts(root)

  const change = <T>(work: () => T): Promise<T> =>
    commit(root, () => {
      checkFormat()
      return work()
    })
  const read = (id: string): Entry | undefined => {
    const text = payments.get(id)
    if (text === undefined) return undefined
    const { dispatch, ...entry } = decodeRecord(text)
    if (dispatch === undefined) return entry
    const order = orders.get(id)
    return { ...entry, dispatch: order === undefined ? dispatch : withPaymentOrder(dispatch, order) }
  }
  const put = (previous: Entry | undefined, next: Entry): void => {
    const { dispatch } = next
    void payments.put(
      next.id,
      encodeRecord(dispatch === undefined ? next : { ...next, dispatch: redact(dispatch) }),
    )
    const order = paymentOrderOf(dispatch)
    if (order !== paymentOrderOf(previous?.dispatch))
      void (order === undefined ? orders.remove(next.id) : orders.put(next.id, order))
    indexes.move(previous, next)
  }
  const commitAll = (changes: readonly Change[]): Promise<boolean> =>
    change(() => {
      const made = changes.flatMap(({ previous, next }) => {
        const standing = read(previous.id)
        return standing !== undefined && casToken(standing) === casToken(previous) ? [{ standing, next }] : []
      })
      if (made.length < changes.length) return false
      for (const { standing, next } of made) {
        if (next !== undefined) put(standing, next)
        else {
          void payments.remove(standing.id)
          void orders.remove(standing.id)
          indexes.move(standing, undefined)
        }
      }
      return true
    })
  const found = (ids: readonly string[]): Entry[] => ids.flatMap((id) => read(id) ?? [])

  return {
    name: 'lmdb',
    answers: openAnswerFiles(join(directory, 'answers')),
    now: () => Date.now(),
    check: async () => check(),
    get: async (key) => read(paymentId(key)),
    find: async (id) => read(id),
    insert: async (entry) => {
      check()
      return change(() => {
        const [standing] = found([entry.id, ...indexes.identified(entry)])
        if (standing !== undefined) return standing
        put(undefined, entry)
        return undefined
      })
    },
    commit: commitAll,
    replace: (previous, next) => commitAll([{ previous, next }]),
    remove: (entry) => commitAll([{ previous: entry, next: undefined }]),
    entries: async function* () {
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
    due: async (queue, now, limit) => found(indexes.due(queue, now, limit)),
    undelivered: async (buyer, since, limit) => found(indexes.undelivered(buyer, since, limit)),
    remember: async (name, fact, until) => {
      check()
      return change(() => facts.remember(name, fact, until))
    },
    recall: async (name, now) => {
      check()
      if (facts.haveEnded(now)) await change(() => facts.forget(now))
      return facts.recall(name, now)
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
        return { name, owner, fence, left }
      }),
    release: ({ name, fence }, left) =>
      change(() => {
        if (leases.get(name)?.fence === fence)
          void leases.put(name, { owner: '', until: 0, length: 0, fence, left })
      }),
    close,
  }
}

/** How many entries are looked up at once while all are listed. */
const PAGE = 100
