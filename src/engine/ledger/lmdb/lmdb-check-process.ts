/** Reads all of the store in the directory that is its argument, and sends what is wrong with it. */
import { messageOf } from '../../base/errors.ts'
import { openDirectory } from './lmdb-store.ts'
import { decodeRecord, FORMAT } from '../record-codec.ts'

const [directory = ''] = process.argv.slice(2)
const { root, close } = openDirectory(directory)
try {
  const isOurs = root.openDB({ name: 'meta', encoding: 'json' }).get('format') === FORMAT
  for (const name of isOurs ? Array.from(root.getKeys()) : []) {
    if (typeof name !== 'string') throw new Error('the list of its parts cannot be read')
    const part = root.openDB({ name, encoding: 'binary' })
    // Walks the list of free pages too.
    const stats = part.getStats()
    const expected = 'entryCount' in stats ? stats.entryCount : undefined
    let found = 0
    for (const { key, value } of part.getRange()) {
      if (!part.doesExist(key)) throw new Error(`an entry of ${name} is in the wrong place`)
      if (name === 'payments') decodeRecord(value.toString())
      found += 1
    }
    if (found !== expected) throw new Error(`${name} has ${found} of ${String(expected)} entries`)
  }
} catch (fault) {
  process.send?.(messageOf(fault))
}
await close()
