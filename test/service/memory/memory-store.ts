import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { openEmbedded } from '../../../src/service/memory/embedded.ts'
import { testMemoryStore, type Findings } from '../../contract/memory-store.ts'

t.setTimeout(180_000)

let first: Findings | undefined

testMemoryStore(
  'the embedded database',
  async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ratecard-memory-'))
    const database = openEmbedded(directory)
    t.teardown(async () => {
      await database.close()
      rmSync(directory, { recursive: true, force: true })
    })
    return database
  },
  (t, findings) => {
    t.equal(first, undefined)
    first = findings
  },
)
