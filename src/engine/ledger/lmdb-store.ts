import { closeSync, existsSync, mkdirSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
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
    const root = open({ ...DURABLE, path, encoding: 'json', maxDbs: 12 })
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

/** Reads and writes that happen together or not at all, and are on disk when this resolves. */
export async function commit<T>(root: RootDatabase, work: () => T): Promise<T> {
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
