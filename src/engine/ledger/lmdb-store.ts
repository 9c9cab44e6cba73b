import { closeSync, mkdirSync, openSync, readSync, realpathSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { open, type RootDatabase } from 'lmdb'
import { LedgerError } from './ledger.ts'
import { FORMAT, refuseFormat } from './record-codec.ts'

export interface Store {
  readonly root: RootDatabase
  /** Throws `LedgerError` when the files are not those any more that were opened. */
  readonly check: () => void
  /** Throws `LedgerError` when a newer version has changed the format. */
  readonly checkFormat: () => void
  readonly close: () => Promise<void>
}

/** LMDB's lock belongs to the process: its main thread, opening a store for the second time, would wait for itself. */
const opened = new Set<string>()

/** Throws `LedgerError` when the directory cannot be used, or holds a store of another format, which stays as it is. */
export async function openStore(directory: string): Promise<Store> {
  const { root, file, close } = openDirectory(directory)
  const { ino } = statSync(file)
  const meta = root.openDB<unknown, string>({ name: 'meta', encoding: 'json' })
  const checkFormat = (): void => {
    const found = meta.get('format')
    if (found !== FORMAT) throw new LedgerError(refuseFormat(`the ledger in ${directory}`, found))
  }
  const check = (): void => {
    if (statSync(file, { throwIfNoEntry: false })?.ino !== ino)
      throw new LedgerError(
        `the ledger files in ${directory} were deleted or replaced while this process uses them: no new payment is taken; stop the process, put the files back and start it again`,
      )
  }
  try {
    if (meta.get('format') === undefined)
      await commit(root, () => {
        // Another process may have opened the same store.
        if (meta.get('format') === undefined) void meta.put('format', FORMAT)
      })
    checkFormat()
  } catch (fault) {
    await close()
    throw fault
  }
  return { root, check, checkFormat, close }
}

function openDirectory(directory: string): Pick<Store, 'root' | 'close'> & { readonly file: string } {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const path = realpathSync(directory)
    if (opened.has(path)) throw new Error('it is open in this process already')
    const file = join(path, 'data.mdb')
    checkFile(file)
    const root = openCurrent(path)
    opened.add(path)
    let closed: Promise<void> | undefined
    return { root, file, close: () => (closed ??= root.close().finally(() => opened.delete(path))) }
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
const MAGIC = 0xbeefc0de
/** Where the first of two meta pages has its members: after the header of the page, little-endian. */
const META = { magic: 24, pageSize: 48, lastPage: 144, transaction: 152 }
const HEADER_BYTES = 160
/** Free pages at the end of the file need not have been written. */
const UNWRITTEN_PAGES = 64n

/** The library ends the whole process with a signal when the file is not one of its own, or shorter than it says. */
function checkFile(file: string): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (size === 0) return
  const descriptor = openSync(file, 'r')
  try {
    const metaAt = (position: number): Buffer => {
      const page = Buffer.alloc(HEADER_BYTES)
      const read = readSync(descriptor, page, 0, HEADER_BYTES, position)
      if (position > 0 && read === 0) throw new Error(cutOff(size))
      if (page.readUInt32LE(META.magic) !== MAGIC) throw new Error('data.mdb is not an LMDB file')
      if (read < HEADER_BYTES) throw new Error(cutOff(size))
      return page
    }
    const first = metaAt(0)
    const pageSize = first.readUInt32LE(META.pageSize)
    const second = metaAt(pageSize)
    const isFirst = first.readBigUInt64LE(META.transaction) > second.readBigUInt64LE(META.transaction)
    const pages = (isFirst ? first : second).readBigUInt64LE(META.lastPage) + 1n
    const needed = pages * BigInt(pageSize)
    if (BigInt(size) >= needed) return
    if (BigInt(size) < needed - UNWRITTEN_PAGES * BigInt(pageSize)) throw new Error(cutOff(size, needed))
    // To read behind the end of a file ends the process.
    truncateSync(file, Number(needed))
  } finally {
    closeSync(descriptor)
  }
}

function cutOff(size: number, needed?: bigint): string {
  const whole = needed === undefined ? '' : ` of ${needed}`
  return `data.mdb is cut off (${size}${whole} bytes): restore it from a backup, or move the directory aside, start with an empty one and compare with "ratecard payments reconcile"`
}

/** Opening anew puts the pointer right. */
const OPENINGS = 20

/** Opens the environment and leaves it only when its pointer is right: whoever opens may have set it back. */
function openCurrent(path: string): RootDatabase {
  for (let openings = 1; ; openings += 1) {
    const root = open({ ...DURABLE, path, encoding: 'json', maxDbs: 12 })
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

/** By the file. `getStats` of the library tells it too, and walks the list of free pages for it. */
function lastOf(root: RootDatabase): number {
  if (!('env' in root) || typeof root.env !== 'object' || root.env === null) throw new Error(UNTOLD)
  const { env } = root
  if (!('info' in env) || typeof env.info !== 'function') throw new Error(UNTOLD)
  const info: unknown = env.info()
  if (typeof info !== 'object' || info === null || !('lastTxnId' in info)) throw new Error(UNTOLD)
  const { lastTxnId } = info
  if (typeof lastTxnId !== 'number') throw new Error(UNTOLD)
  return lastTxnId
}

const UNTOLD = 'this lmdb does not tell the number of its last transaction'

/** Between looks at a pointer that the process that set it back is about to put right. */
const LOOK_MS = 5
const LONGEST_LOOKS = 1_000

const BEHIND = Symbol('behind')

const STUCK =
  'whoever opened it last has died on the way: open it once more, with "ratecard payments list", and this process goes on'

/** Reads and writes that happen together or not at all, and are on disk when this resolves. */
export async function commit<T>(root: RootDatabase, work: () => T): Promise<T> {
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

/** The library tells why a commit has failed in a second promise, which has to be taken as well. */
async function reasonOf(fault: unknown): Promise<string> {
  if (!(fault instanceof Error && 'commitError' in fault)) return messageOf(fault)
  return Promise.resolve(fault.commitError).then(messageOf, messageOf)
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault)
}
