import { appendFileSync, closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { LedgerError, messageOf } from '../../base/errors.ts'

/** Number near the beginning of every LMDB file. */
const MAGIC = 0xbeefc0de
/** Offsets in the first of two meta pages, after its header, little-endian. */
const META = { magic: 24, pageSize: 48, lastPage: 144, transaction: 152 }
const HEADER_BYTES = 160
/** Free pages at the end of the file may be missing. */
const UNWRITTEN_PAGES = 64n

const RESTORE =
  'restore it from a backup, or move the directory aside, start with an empty one and compare with "ratecard payments reconcile"'

/** Throws when a file is not an LMDB file, or is shorter than it states: the library would kill the process. */
export function checkFile(file: string): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return
  const descriptor = openSync(file, 'r')
  try {
    const metaAt = (position: number): Buffer => {
      const page = Buffer.alloc(HEADER_BYTES)
      const read = readSync(descriptor, page, 0, HEADER_BYTES, position)
      if (position > 0 && read === 0) throw new Error(cutOff(fstatSync(descriptor).size))
      if (page.readUInt32LE(META.magic) !== MAGIC) throw new Error('data.mdb is not an LMDB file')
      if (read < HEADER_BYTES) throw new Error(cutOff(fstatSync(descriptor).size))
      return page
    }
    const first = metaAt(0)
    const pageSize = first.readUInt32LE(META.pageSize)
    const second = metaAt(pageSize)
    const isFirst = first.readBigUInt64LE(META.transaction) > second.readBigUInt64LE(META.transaction)
    const pages = (isFirst ? first : second).readBigUInt64LE(META.lastPage) + 1n
    const needed = pages * BigInt(pageSize)
    // After the pages that state it: another process that is writing makes the file longer first.
    const { size } = fstatSync(descriptor)
    if (BigInt(size) >= needed) return
    if (BigInt(size) < needed - UNWRITTEN_PAGES * BigInt(pageSize)) throw new Error(cutOff(size, needed))
    // Reading beyond the end of a file kills the process. Appending keeps what another process writes there meanwhile.
    appendFileSync(file, Buffer.alloc(Number(needed) - size))
  } finally {
    closeSync(descriptor)
  }
}

function cutOff(size: number, needed?: bigint): string {
  const whole = needed === undefined ? '' : ` of ${needed}`
  return `data.mdb is cut off (${size}${whole} bytes): ${RESTORE}`
}

export function unusable(directory: string, fault: unknown): LedgerError {
  const reason = messageOf(fault)
  if (/^MDB_(CORRUPTED|PAGE_NOTFOUND|INVALID)/.test(reason)) return damaged(directory, reason)
  return new LedgerError(`the ledger directory ${directory} cannot be used: ${reason}`, { cause: fault })
}

export function damaged(directory: string, reason: string): LedgerError {
  return new LedgerError(`the ledger in ${directory} is damaged (${reason}): ${RESTORE}`)
}
