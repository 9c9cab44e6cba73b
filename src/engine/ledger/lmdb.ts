import { closeSync, existsSync, mkdirSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import type { Entry } from './entry.ts'
import { openIndexes } from './lmdb-indexes.ts'
import { LedgerError, paymentId, type Ledger, type Lease, type Left } from './ledger.ts'

/** Changes when stored entries change their shape: an older store is migrated or refused, never misread. */
const FORMAT = 2

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
  const format = await formatOf(root)
  if (format !== FORMAT) {
    await close()
    throw new LedgerError(
      `the ledger in ${directory} has format ${format}; this version reads format ${FORMAT}`,
    )
  }
  // By public id, which is short and plain whatever the key is.
  const payments = root.openDB<Entry, string>({ name: 'payments', encoding: 'json' })
  const leases = root.openDB<Held, string>({ name: 'leases', encoding: 'json' })
  const facts = root.openDB<Facts, string>({ name: 'facts', encoding: 'json' })
  const indexes = openIndexes(root)
  return {
    name: 'lmdb',
    get: async (key) => payments.get(paymentId(key)),
    find: async (id) => payments.get(id),
    insert: (entry) =>
      commit(root, () => {
        const standing = payments.get(indexes.identified(entry) ?? entry.id)
        if (standing !== undefined) return standing
        void payments.put(entry.id, entry)
        indexes.move(undefined, entry)
        return undefined
      }),
    replace: (previous, next) =>
      commit(root, () => {
        const standing = payments.get(previous.id)
        if (standing?.version !== previous.version) return false
        if ((indexes.identified(next) ?? next.id) !== next.id) return false
        void payments.put(previous.id, next)
        indexes.move(standing, next)
        return true
      }),
    remove: (entry) =>
      commit(root, () => {
        const standing = payments.get(entry.id)
        if (standing?.version !== entry.version) return false
        void payments.remove(entry.id)
        indexes.move(standing, undefined)
        return true
      }),
    entries: async function* () {
      // Ids and times only: all the answers together may be larger than the memory.
      const order = Array.from(payments.getRange(), ({ key, value }) => ({ id: key, at: value.createdAt }))
      for (const { id } of order.sort((a, b) => a.at - b.at)) {
        const entry = payments.get(id)
        if (entry !== undefined) yield entry
      }
    },
    due: async (now, limit) => found(payments, indexes.due(now, limit)),
    bought: async (buyer, since) => found(payments, indexes.bought(buyer, since)),
    remember: async (name, fact, until) => {
      await commit(root, () => void facts.put(name, { ...facts.get(name), [fact]: until }))
    },
    recall: async (name, now) =>
      Object.entries(facts.get(name) ?? {}).flatMap(([fact, until]) => (until > now ? [fact] : [])),
    lease: (name, owner, now, until) =>
      commit(root, (): Lease | undefined => {
        const held = leases.get(name)
        if (held !== undefined && held.owner !== owner && held.until > now) return undefined
        const fence = held?.owner === owner ? held.fence : (held?.fence ?? 0) + 1
        const left = held?.left
        void leases.put(name, { owner, until, fence, left })
        return { name, owner, fence, left }
      }),
    release: async ({ name, fence }, left) => {
      await commit(root, () => {
        if (leases.get(name)?.fence === fence) void leases.put(name, { owner: '', until: 0, fence, left })
      })
    },
    close,
  }
}

/** Facts of one name, each with its end. */
type Facts = Readonly<Record<string, number>>

function found(payments: { get(id: string): Entry | undefined }, ids: readonly string[]): Entry[] {
  return ids.flatMap((id) => payments.get(id) ?? [])
}

/** LMDB's lock belongs to the process: its main thread, opening a store for the second time, would wait for itself. */
const opened = new Set<string>()

interface Store {
  readonly root: RootDatabase
  readonly close: () => Promise<void>
}

function openStore(directory: string): Store {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const path = realpathSync(directory)
    if (opened.has(path)) throw new Error('it is open in this process already')
    checkFile(join(path, 'data.mdb'))
    const root = open({ ...DURABLE, path, encoding: 'json', maxDbs: 8 })
    opened.add(path)
    let closed: Promise<void> | undefined
    return { root, close: () => (closed ??= root.close().finally(() => opened.delete(path))) }
  } catch (fault) {
    throw new LedgerError(`the ledger directory ${directory} cannot be used: ${messageOf(fault)}`, {
      cause: fault,
    })
  }
}

/**
 * A transaction's promise is the word of the disk. With `overlappingSync` it comes before the disk's, and when the disk
 * is full the other word never comes; with `eventTurnBatching` a failed commit also rejects a promise nobody holds,
 * which ends the process.
 */
const DURABLE = { overlappingSync: false, eventTurnBatching: false }

/** What every LMDB file has near its beginning. */
const MAGIC = Buffer.from('dec0efbe', 'hex')

/** The library ends the whole process with a segmentation fault when the file is not one of its own. */
function checkFile(file: string): void {
  if (!existsSync(file) || statSync(file).size === 0) return
  const descriptor = openSync(file, 'r')
  try {
    const start = Buffer.alloc(64)
    readSync(descriptor, start)
    if (!start.includes(MAGIC)) throw new Error('data.mdb is not an LMDB file')
  } finally {
    closeSync(descriptor)
  }
}

/** The store's own; a new one gets ours. */
async function formatOf(root: RootDatabase): Promise<number> {
  const meta = root.openDB<number, string>({ name: 'meta', encoding: 'json' })
  const found = meta.get('format')
  if (found !== undefined) return found
  return commit(root, () => {
    // Another process may have opened the same new store.
    const written = meta.get('format')
    if (written === undefined) void meta.put('format', FORMAT)
    return written ?? FORMAT
  })
}

/** Reads and writes that happen together or not at all, and are on disk when this resolves. */
async function commit<T>(root: RootDatabase, work: () => T): Promise<T> {
  try {
    return await root.transaction(work)
  } catch (fault) {
    const reason = await reasonOf(fault)
    throw new LedgerError(`the ledger could not store a change: ${reason}`, { cause: fault })
  }
}

/** The library tells why a commit has failed in a second promise, which has to be taken as well. */
async function reasonOf(fault: unknown): Promise<string> {
  if (!(fault instanceof Error && 'commitError' in fault)) return messageOf(fault)
  return Promise.resolve(fault.commitError).then(messageOf, messageOf)
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault)
}
