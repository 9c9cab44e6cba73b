import t from 'tap'
import { livePages } from '../../../../src/engine/http/live-pages.ts'
import { createRevision } from '../../../../src/engine/http/revision.ts'
import type { AllFigures } from '../../../../src/engine/http/status.ts'
import { findNetwork } from '../../../../src/engine/base/networks.ts'
import type { NetworkHealth } from '../../../../src/engine/payment/network-health.ts'
import { UsageStore } from '../../../../src/engine/usage/usage-store.ts'
import { compileRoutes } from '../../../support/catalogs.ts'
import { openTemporaryLedger } from '../../../support/temporary-ledger.ts'

t.test('computes the status once a second, however many ask', async (t) => {
  const ledger = await openTemporaryLedger(t)
  let time = Date.parse('2026-11-22T08:00:00Z')
  let worked = 0
  let settling: readonly NetworkHealth[] = []
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
    proxy: { fetcher: fetch, secret: () => undefined, report: () => undefined },
  })
  const usageStore = new UsageStore({ ledger, owner: 'test', now })
  const page = livePages(
    {
      now,
      ledger,
      usageStore,
      figures,
      networks: async () => settling,
      listings: async () => [],
      refused: () => undefined,
      phase: () => 'serving',
      report: (fault) => t.fail(String(fault)),
    },
    revision,
  )
  const bodies = async (): Promise<Set<string>> =>
    new Set(
      (await Promise.all(Array.from({ length: 100 }, () => page('status-json')))).map(({ body }) =>
        String(body),
      ),
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

  const network = findNetwork('eip155:8453')
  if (network === undefined) throw new Error('Base is a known network')
  const trouble = 'too many transactions have failed lately'
  const balances = new Map([['0xSigner', 5n * 10n ** 17n]])
  const totals = { transactions: 3, gasSpent: 10n ** 16n }
  const unmined = { count: 1, age: 0 }
  settling = [{ network, balances, totals, unmined, reverts: 2, gasLost: 10n ** 15n, trouble }]
  time += 1_000
  const [closed = ''] = await bodies()
  t.match(JSON.parse(closed), {
    networks: [
      {
        network: 'eip155:8453',
        status: 'closed',
        reason: trouble,
        signers: [{ address: '0xSigner', balance: '0.5' }],
        gas_lost_last_hour: '0.001',
        unmined: 1,
      },
    ],
  })
})
