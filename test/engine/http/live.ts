import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { livePages } from '../../../src/engine/http/live.ts'
import { createRevision } from '../../../src/engine/http/revision.ts'
import type { AllFigures } from '../../../src/engine/http/status.ts'
import { openLmdbLedger } from '../../../src/engine/ledger/lmdb.ts'
import { UsageStore } from '../../../src/engine/usage/usage-store.ts'
import { compileRoutes } from '../../support/compiled.ts'

t.test('the status is worked out once a second, however many ask for it', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-live-'))
  const ledger = await openLmdbLedger(directory)
  t.teardown(async () => {
    await ledger.close()
    rmSync(directory, { recursive: true, force: true })
  })
  let time = Date.parse('2026-11-22T08:00:00Z')
  let worked = 0
  const now = (): number => time
  const figures: AllFigures = () => {
    worked += 1
    return new Map()
  }
  const revision = createRevision({
    catalog: compileRoutes('  /paid/x: { price: 1, summary: X }\n'),
    handlers: {},
    protocols: [],
    baseUrl: 'https://api.example.com',
    mcpUrls: {},
    sandbox: false,
    proxy: { fetcher: fetch, secret: () => undefined },
  })
  const usageStore = new UsageStore({ ledger, owner: 'test', now })
  const page = livePages(
    { now, ledger, usageStore, figures, refused: () => undefined, report: (fault) => t.fail(String(fault)) },
    revision,
  )
  const bodies = async (): Promise<Set<string>> =>
    new Set(
      (await Promise.all(Array.from({ length: 100 }, () => page('status-json')))).map(({ body }) => body),
    )
  t.equal((await bodies()).size, 1)
  t.equal(worked, 1)
  time += 999
  await bodies()
  t.equal(worked, 1)
  time += 1
  const [later = ''] = await bodies()
  t.equal(worked, 2)
  t.match(JSON.parse(later), { checked_at: '2026-11-22T08:00:01.000Z' })
})
