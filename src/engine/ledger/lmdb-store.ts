import { closeSync, existsSync, mkdirSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { open, type RootDatabase } from 'lmdb'
import { LedgerError } from './ledger.ts'

export interface Store {
  readonly root: RootDatabase
  readonly close: () => Promise<void>
}

/** LMDB's lock belongs to the process: its main thread, opening a store for the second time, would wait for itself. */
const opened = new Set<string>()

/** Throws `LedgerError` when the directory cannot be used. */
export function openStore(directory: string): Store {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const path = realpathSync(directory)
    if (opened.has(path)) throw new Error('it is open in this process already')
    checkFile(join(path, 'data.mdb'))
    const root = openCurrent(path)
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
