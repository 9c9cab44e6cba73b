import { hash } from 'node:crypto'
import { join } from 'node:path'
import { mkdirSync, realpathSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type RootDatabase, open } from 'lmdb'
import { openAnswerFiles } from './answer-files.ts'
import { openLmdbAnswers } from './lmdb-answers.ts'
import type { PaymentRecord } from './payment-record.ts'
import type { Change, Ledger, Lease, LeaseState } from './ledger.ts'
import { followReopening, inodeOf, isReopened, markReopened, ReopenedError } from './lmdb-reopening.ts'
import { checkFile, unusable } from './lmdb-file.ts'
import {
  paymentId,
  paymentOrderOf,
  redact,
  withPaymentOrder,
  casToken,
  isUndelivered,
  queueOf,
  type Queue,
} from './payment-lifecycle.ts'
import { decodeRecord, encodeRecord, FORMAT, refuseFormat } from './record-codec.ts'
import { LedgerError, LedgerLostError, messageOf } from '../errors.ts'

interface Held {
  readonly owner: string
  readonly until: number
  /** Milliseconds. */
  readonly length: number
  readonly fence: number
  readonly left?: LeaseState | undefined
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

  const change = <T>(work: () => T): Promise<T> =>
    commit(root, () => {
      checkFormat()
      return work()
    })
  const read = (id: string): PaymentRecord | undefined => {
    const text = payments.get(id)
    if (text === undefined) return undefined
    const { dispatch, ...entry } = decodeRecord(text)
    if (dispatch === undefined) return entry
    const order = orders.get(id)
    return { ...entry, dispatch: order === undefined ? dispatch : withPaymentOrder(dispatch, order) }
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
  }
  const commitAll = (changes: readonly Change[]): Promise<boolean> =>
    change(() => {
      const made = changes.flatMap(({ previous, next }) => {
        if (payments.get(previous.id) === (texts.get(previous) ?? '')) return [{ standing: previous, next }]
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
  const found = (ids: readonly string[]): PaymentRecord[] => ids.flatMap((id) => read(id) ?? [])

  return {
    name: 'lmdb',
    answers: openLmdbAnswers({
      values: root.openDB({ name: 'answers', encoding: 'binary' }),
      change,
      now: () => Date.now(),
      files: openAnswerFiles(join(directory, 'answers')),
    }),
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
    addExpiring: async (name, fact, until) => {
      check()
      return change(() => facts.remember(name, fact, until))
    },
    listExpiring: async (name, now) => {
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
        return { name, owner, fencingToken: fence, leaseState: left }
      }),
    release: ({ name, fencingToken: fence }, left) =>
      change(() => {
        if (leases.get(name)?.fence === fence)
          void leases.put(name, { owner: '', until: 0, length: 0, fence, left })
      }),
    reopen,
    close,
  }
}

/** Records per look-up while all are listed. */
const PAGE = 100

/** Creation time and id of a record. */
type Age = [number, string]

/** Indexes of the records, updated in the same transactions. */
function openIndexes(root: RootDatabase) {
  const ages = root.openDB<string, Age>({ name: 'ages', encoding: 'string' })
  const buyers = root.openDB<string, [string, number, string]>({ name: 'undelivered', encoding: 'string' })
  const dues = root.openDB<string, [Queue, number, string]>({ name: 'dues', encoding: 'string' })
  const identifiers = root.openDB<string, string>({ name: 'identifiers', encoding: 'string' })

  return {
    /** Replaces what was stored (undefined: nothing) in every index. */
    move: (previous: PaymentRecord | undefined, next: PaymentRecord | undefined): void => {
      if (previous === undefined && next !== undefined) void ages.put([next.createdAt, next.id], '')
      if (previous !== undefined && next === undefined) void ages.remove([previous.createdAt, previous.id])
      if (previous !== undefined && isUndelivered(previous)) void buyers.remove(buyerKey(previous))
      if (next !== undefined && isUndelivered(next)) void buyers.put(buyerKey(next), '')
      if (previous?.due !== undefined) void dues.remove([queueOf(previous), previous.due, previous.id])
      if (next?.due !== undefined) void dues.put([queueOf(next), next.due, next.id], '')
      if (previous?.identifier !== next?.identifier) {
        if (previous?.identifier !== undefined) void identifiers.remove(previous.identifier)
        if (next?.identifier !== undefined) void identifiers.put(next.identifier, next.id)
      }
    },
    /** Id of the record with the identifier of this one. */
    identified: ({ identifier }: PaymentRecord): string[] => {
      const id = identifier === undefined ? undefined : identifiers.get(identifier)
      return id === undefined ? [] : [id]
    },
    due: (queue: Queue, now: number, limit: number): string[] =>
      Array.from(dues.getKeys({ start: [queue], end: [queue, now + 1], limit }), ([, , id]) => id),
    /** Newest first. */
    undelivered: (buyer: string, since: number, limit: number): string[] => {
      const newestFirst = { start: [buyer, Number.MAX_SAFE_INTEGER], end: [buyer, since], reverse: true }
      return Array.from(buyers.getKeys({ ...newestFirst, limit }), ([, , id]) => id)
    },
    /** The next records by age; undefined: from the oldest. */
    after: (last: Age | undefined, limit: number): Age[] =>
      Array.from(
        ages.getKeys({ ...(last === undefined ? {} : { start: last, exclusiveStart: true }), limit }),
      ),
  }
}

function buyerKey({ buyerKey: buyer, createdAt, id }: PaymentRecord): [string, number, string] {
  return [buyer, createdAt, id]
}

interface Fact {
  readonly fact: string
  readonly until: number
}

/** Keys are limited in characters and length, names and facts are not. */
type FactKey = [name: string, fact: string]

/** Facts that expire, by name. `remember` and `forget` are called in a transaction. */
function openFacts(root: RootDatabase) {
  const facts = root.openDB<Fact, FactKey>({ name: 'facts', encoding: 'json' })
  const ends = root.openDB<string, [number, ...FactKey]>({ name: 'ends', encoding: 'string' })
  return {
    remember: (name: string, fact: string, until: number): number => {
      const key: FactKey = [digest(name), digest(fact)]
      const known = facts.get(key)
      if (known !== undefined) void ends.remove([known.until, ...key])
      void facts.put(key, { fact, until })
      void ends.put([until, ...key], '')
      return facts.getKeysCount(under(name))
    },
    recall: (name: string, now: number): string[] => {
      const found = facts.getRange(under(name))
      return Array.from(found).flatMap(({ value }) => (value.until > now ? [value.fact] : []))
    },
    /** Whether any fact has expired. */
    haveEnded: (now: number): boolean => Array.from(ends.getKeys({ end: [now + 1], limit: 1 })).length > 0,
    /** Deletes some of the expired facts. */
    forget: (now: number): void => {
      for (const [until, ...key] of Array.from(ends.getKeys({ end: [now + 1], limit: FORGOTTEN_AT_ONCE }))) {
        void facts.remove(key)
        void ends.remove([until, ...key])
      }
    },
  }
}

const FORGOTTEN_AT_ONCE = 1_000

/** Sorts after every digest. */
const AFTER = '~'

function under(name: string): { start: [string]; end: [string, string] } {
  const start = digest(name)
  return { start: [start], end: [start, AFTER] }
}

function digest(text: string): string {
  return hash('sha256', Buffer.from(text, 'utf16le'), 'base64url')
}

interface Opening {
  readonly root: RootDatabase
  readonly file: string
  readonly close: () => Promise<void>
}

interface Store extends Omit<Opening, 'file'> {
  /** Throws `LedgerLostError` when the files are not the opened ones any more. */
  readonly check: () => void
  readonly reopen: () => Promise<void>
  /** Throws `LedgerError` when a newer version has changed the format. */
  readonly checkFormat: () => void
}

/** LMDB's lock belongs to the process: opening files twice would make the main thread wait for itself. */
const opened = new Set<string>()

/** Throws `LedgerError` when the directory is unusable, or has a store of another format, which stays unchanged. */
async function openStore(directory: string, { root, file, close }: Opening): Promise<Store> {
  const own = inodeOf(file)
  const openedAt = Date.now()
  const meta = root.openDB<unknown, string>({ name: 'meta', encoding: 'json' })
  const checkFormat = (): void => {
    const found = meta.get('format')
    if (found !== FORMAT) throw new LedgerError(refuseFormat(`the ledger in ${directory}`, found))
  }
  const check = (): void => {
    if (inodeOf(file) === own) return
    const store = `the ledger in ${directory}`
    throw isReopened(file, openedAt)
      ? new ReopenedError(store)
      : new LedgerLostError(store, 'has lost its files: they were deleted or replaced')
  }
  if (meta.get('format') === undefined)
    await commit(root, () => {
      // Another process may have opened the same store.
      if (meta.get('format') === undefined) void meta.put('format', FORMAT)
    })
  checkFormat()
  return { root, check, reopen: () => markReopened(file, Date.now()), checkFormat, close }
}

export function openDirectory(directory: string): Opening {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const path = realpathSync(directory)
    const file = join(path, 'data.mdb')
    if (opened.has(inodeOf(file))) throw new Error('it is open in this process already')
    checkFile(file)
    const root = openCurrent(path)
    const inode = inodeOf(file)
    opened.add(inode)
    let closed: Promise<void> | undefined
    return { root, file, close: () => (closed ??= root.close().finally(() => opened.delete(inode))) }
  } catch (fault) {
    throw unusable(directory, fault)
  }
}

/**
 * A transaction's promise is the word of the disk. With `overlappingSync` it comes before the disk's, and when the disk
 * is full the other word never comes; with `eventTurnBatching` a failed commit also rejects a promise nobody holds,
 * which ends the process.
 */
const DURABLE = { overlappingSync: false, eventTurnBatching: false }

/** Opening the environment again corrects the pointer. */
const OPENINGS = 20

/** Opens the environment until its pointer is right: another process that opens it may have set it back. */
function openCurrent(path: string): RootDatabase {
  for (let openings = 1; ; openings += 1) {
    // Without `noSubdir: false` a dot in the name of the folder makes it a file.
    const root = open({ ...DURABLE, path, noSubdir: false, encoding: 'json', maxDbs: 12 })
    if (openings === OPENINGS || !root.transactionSync(() => isBehind(root))) return root
    void root.close()
  }
}

/**
 * LMDB keeps the number of the last transaction twice: in the file, and as a pointer in memory that processes share. A
 * process that opens the environment sets the pointer to what it has just read from the file, and when another one
 * commits in between, sets it back (ITS#9496): the next transaction would then be made on the state before that commit
 * and take its place, and what was acknowledged would be gone. Here it is noticed instead, and nothing is written.
 */
function isBehind(root: RootDatabase): boolean {
  return root.getWriteTxnId() !== lastOf(root) + 1
}

/** From the file: `getStats` of the library returns it too, but walks the list of free pages. */
function lastOf(root: RootDatabase): number {
  if (!('env' in root) || typeof root.env !== 'object' || root.env === null) throw new Error(UNTOLD)
  if (!('info' in root.env) || typeof root.env.info !== 'function') throw new Error(UNTOLD)
  const info: unknown = root.env.info()
  if (typeof info !== 'object' || info === null || !('lastTxnId' in info)) throw new Error(UNTOLD)
  const { lastTxnId } = info
  if (typeof lastTxnId !== 'number') throw new Error(UNTOLD)
  return lastTxnId
}

const UNTOLD = 'this version of lmdb does not expose the number of its last transaction'

/** Pause between checks of a pointer that the other process is about to correct. */
const LOOK_MS = 5
const LONGEST_LOOKS = 1_000

const BEHIND = Symbol('behind')

const STUCK =
  'the process that opened it last has ended unexpectedly: open it again, for example with "ratecard payments list", and this process continues'

/** Reads and writes that happen as a whole or not at all, and are on disk when this resolves. */
async function commit<T>(root: RootDatabase, work: () => T): Promise<T> {
  try {
    for (let looks = 1; ; looks += 1) {
      const done = await root.transaction(() => (isBehind(root) ? BEHIND : { value: work() }))
      if (done !== BEHIND) return done.value
      if (looks > LONGEST_LOOKS) throw new Error(STUCK)
      await delay(LOOK_MS)
    }
  } catch (fault) {
    const reason = await reasonOf(fault)
    throw new LedgerError(`the ledger could not store a change: ${reason}`, { cause: fault })
  }
}

/** The library reports the reason of a failed commit in a second promise, which must be awaited too. */
async function reasonOf(fault: unknown): Promise<string> {
  if (!(fault instanceof Error && 'commitError' in fault)) return messageOf(fault)
  return Promise.resolve(fault.commitError).then(messageOf, messageOf)
}
