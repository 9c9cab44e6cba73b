import type { Entry } from './entry.ts'
import { paymentId, type Ledger, type Lease, type Left } from './ledger.ts'
import { openFacts } from './lmdb-facts.ts'
import { settleFormat } from './lmdb-format.ts'
import { openIndexes, type Age } from './lmdb-indexes.ts'
import { commit, openStore } from './lmdb-store.ts'
import { stampOf } from './stamp.ts'

interface Held {
  readonly owner: string
  readonly until: number
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
  const { root, close } = openStore(directory)
  const checkFormat = await settleFormat(root, `the ledger in ${directory}`).catch(async (fault: unknown) => {
    await close()
    throw fault
  })
  // By public id, which is short and plain whatever the key is.
  const payments = root.openDB<Entry, string>({ name: 'payments', encoding: 'json' })
  const leases = root.openDB<Held, string>({ name: 'leases', encoding: 'json' })
  const indexes = openIndexes(root)
  const facts = openFacts(root)

  const change = <T>(work: () => T): Promise<T> =>
    commit(root, () => {
      checkFormat()
      return work()
    })
  const exchange = (previous: Entry, next: Entry | undefined): Promise<boolean> =>
    change(() => {
      const standing = payments.get(previous.id)
      if (standing === undefined || stampOf(standing) !== stampOf(previous)) return false
      if (next === undefined) void payments.remove(previous.id)
      else void payments.put(previous.id, next)
      indexes.move(standing, next)
      return true
    })
  const found = (ids: readonly string[]): Entry[] => ids.flatMap((id) => payments.get(id) ?? [])

  return {
    name: 'lmdb',
    get: async (key) => payments.get(paymentId(key)),
    find: async (id) => payments.get(id),
    insert: (entry) =>
      change(() => {
        const [standing] = found([entry.id, ...indexes.identified(entry)])
        if (standing !== undefined) return standing
        void payments.put(entry.id, entry)
        indexes.move(undefined, entry)
        return undefined
      }),
    replace: (previous, next) => exchange(previous, next),
    remove: (entry) => exchange(entry, undefined),
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
    due: async (now, limit) => found(indexes.due(now, limit)),
    bought: async (buyer, since) => found(indexes.bought(buyer, since)),
    remember: (name, fact, until) => change(() => facts.remember(name, fact, until)),
    recall: async (name, now) => {
      if (facts.haveEnded(now)) await change(() => facts.forget(now))
      return facts.recall(name, now)
    },
    lease: (name, owner, now, until) =>
      change((): Lease | undefined => {
        const held = leases.get(name)
        if (held !== undefined && held.owner !== owner && held.until > now) return undefined
        const fence = held?.owner === owner ? held.fence : (held?.fence ?? 0) + 1
        const left = held?.left
        void leases.put(name, { owner, until, fence, left })
        return { name, owner, fence, left }
      }),
    release: ({ name, fence }, left) =>
      change(() => {
        if (leases.get(name)?.fence === fence) void leases.put(name, { owner: '', until: 0, fence, left })
      }),
    close,
  }
}

/** How many entries are looked up at once while all are listed. */
const PAGE = 100
