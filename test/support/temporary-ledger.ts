import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import { openLmdbLedger } from '../../src/engine/ledger/lmdb/lmdb-ledger.ts'

/** An LMDB ledger of this test alone. It and its folder go when the test ends. */
export async function openTemporaryLedger(t: Test): Promise<Ledger> {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-'))
  const ledger = await openLmdbLedger(directory)
  t.teardown(async () => {
    await ledger.close()
    rmSync(directory, { recursive: true, force: true })
  })
  return ledger
}
