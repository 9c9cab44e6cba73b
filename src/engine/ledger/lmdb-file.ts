import { closeSync, openSync, readSync, statSync, truncateSync } from 'node:fs'

/** What every LMDB file has near its beginning. */
const MAGIC = 0xbeefc0de
/** Where the first of two meta pages has its members: after the header of the page, little-endian. */
const META = { magic: 24, pageSize: 48, lastPage: 144, transaction: 152 }
const HEADER_BYTES = 160
/** Free pages at the end of the file need not have been written. */
const UNWRITTEN_PAGES = 64n

/** The library ends the whole process with a signal when the file is not one of its own, or shorter than it says. */
export function checkFile(file: string): void {
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
