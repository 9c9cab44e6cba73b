import t from 'tap'
import { openWholeService } from '../../../support/service/shipped-handlers.ts'

t.test('shows the operator which source has changed its form, how often and since when', async (t) => {
  const faults = { '/IStoreQueryService/Query/v1/': 'drift', '/api.php': 'html' } as const
  const { serve, records } = await openWholeService(t, faults)
  await serve('/paid/gamestore/deals', { min_discount: 20, min_review: 60, count: 30 })
  await serve('/paid/gamestore/app/{appid}', { appid: 4100000050 })
  const figures = Object.fromEntries(records.figures())
  t.match(figures, {
    'steam-store': { asked: 3, failed: 0, drifted: 0 },
    'steam-api': { asked: 3, failed: 0, drifted: 1, lastDrift: { where: 'response: required' } },
    steamspy: { asked: 1, failed: 1, drifted: 0 },
  })
  t.equal(figures['steam-store']?.lastDrift, undefined)
})
