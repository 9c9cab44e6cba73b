import { type RootDatabase, open } from 'lmdb'
import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { LedgerError, LedgerLostError, messageOf } from '../../base/errors.ts'
import { checkFile, unusable } from './lmdb-file.ts'
import { inodeOf, isReopened, ReopenedError, markReopened } from './lmdb-reopening.ts'
import { FORMAT, refuseFormat } from '../record-codec.ts'

interface Opening {
  readonly root: RootDatabase
  readonly file: string
  readonly close: () => Promise<void>
}

export interface Store extends Omit<Opening, 'file'> {
  /** Throws `LedgerLostError` when the files are not the opened ones any more. */
  readonly check: () => void
  readonly reopen: () => Promise<void>
  /** Throws `LedgerError` when a newer version has changed the format. */
  readonly checkFormat: () => void
}

/** LMDB's lock belongs to the process: opening files twice would make the main thread wait for itself. */
const opened = new Set<string>()

/** Throws `LedgerError` when the directory is unusable, or has a store of another format, which stays unchanged. */
export async function openStore(directory: string, { root, file, close }: Opening): Promise<Store> {
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
 * The promise of a transaction must resolve when the change is on disk. With `overlappingSync` it resolves earlier, and
 * the promise for the disk never settles when the disk is full; with `eventTurnBatching` a failed commit also rejects a
 * promise nobody holds, which ends the process.
 */
const DURABLE = { overlappingSync: false, eventTurnBatching: false }

/** How often the environment is opened again to correct its pointer. */
const OPENINGS = 20

/** Opens the environment until its pointer is right: another process that opens it may have set it back. */
function openCurrent(path: string): RootDatabase {
  for (let openings = 1; ; openings += 1) {
    // Without `noSubdir: false` a dot in the name of the folder makes it a file.
    const root = open({ ...DURABLE, path, noSubdir: false, encoding: 'json', maxDbs: 24 })
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

/**
 * Reads and writes that happen as a whole or not at all, and are on disk when this resolves. Rejects with
 * `LedgerError`.
 */
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

/** The library reports the reason of a failed commit in a second promise, which must be awaited too. */
async function reasonOf(fault: unknown): Promise<string> {
  if (!(fault instanceof Error && 'commitError' in fault)) return messageOf(fault)
  return Promise.resolve(fault.commitError).then(messageOf, messageOf)
}
