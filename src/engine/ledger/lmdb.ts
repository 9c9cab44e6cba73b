import { mkdirSync } from 'node:fs'
import { open, type Database } from 'lmdb'
import type { Entry } from './entry.ts'
import type { Ledger, Lease } from './ledger.ts'

/** Changes when stored entries change their shape: an older store is migrated or refused, never misread. */
const FORMAT = 1

interface Held {
  readonly owner: string
  readonly until: number
  readonly fence: number
  readonly value: number | undefined
}

export class LedgerFormatError extends Error {
  constructor(directory: string, found: unknown) {
    super(`the ledger in ${directory} has format ${String(found)}; this version reads format ${FORMAT}`)
    this.name = 'LedgerFormatError'
  }
}

/**
 * The embedded ledger: shared by all processes of one machine, flushed to disk before a promise resolves.
 * Not for network disks, where LMDB's locks do not hold.
 */
export async function openLmdbLedger(directory: string): Promise<Ledger> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const root = open({ path: directory, encoding: 'json', maxDbs: 8 })
  const meta = root.openDB<number, string>({ name: 'meta', encoding: 'json' })
  const payments = root.openDB<Entry, string>({ name: 'payments', encoding: 'json' })
  const ids = root.openDB<string, string>({ name: 'ids', encoding: 'json' })
  const leases = root.openDB<Held, string>({ name: 'leases', encoding: 'json' })
  const format = await root.transaction(() => {
    const found = meta.get('format')
    if (found === undefined) void meta.put('format', FORMAT)
    return found ?? FORMAT
  })
  if (format !== FORMAT) {
    await root.close()
    throw new LedgerFormatError(directory, format)
  }
  return {
    name: 'lmdb',
    get: async (key) => payments.get(key),
    find: async (id) => {
      const key = ids.get(id)
      return key === undefined ? undefined : payments.get(key)
    },
    insert: (entry) =>
      commit(root, () => {
        if (payments.get(entry.key) !== undefined) return false
        void payments.put(entry.key, entry)
        void ids.put(entry.id, entry.key)
        return true
      }),
    replace: (previous, next) =>
      commit(root, () => {
        if (payments.get(previous.key)?.version !== previous.version) return false
        void payments.put(next.key, next)
        return true
      }),
    entries: async function* () {
      const all = [...payments.getRange()].map(({ value }) => value)
      yield* all.sort((a, b) => a.createdAt - b.createdAt)
    },
    lease: (name, owner, now, until) =>
      commit(root, (): Lease | undefined => {
        const held = leases.get(name)
        if (held !== undefined && held.owner !== owner && held.until > now) return undefined
        const fence = held?.owner === owner ? held.fence : (held?.fence ?? 0) + 1
        const value = held?.value
        void leases.put(name, { owner, until, fence, value })
        return { name, owner, fence, value }
      }),
    release: async (lease, value) => {
      await commit(root, () => {
        if (leases.get(lease.name)?.fence === lease.fence) {
          void leases.put(lease.name, { owner: '', until: 0, fence: lease.fence, value })
        }
      })
    },
    close: () => root.close(),
  }
}

/** Reads and writes that happen together or not at all, and are on disk when this resolves. */
async function commit<T>(root: Database, work: () => T): Promise<T> {
  const result = await root.transaction(work)
  await root.flushed
  return result
}
