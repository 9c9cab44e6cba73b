import t from 'tap'
import type { Fault } from '../../../../src/service/stand-ins/fault.ts'
import { startStandIns } from '../../../../src/service/stand-ins/stand-ins.ts'
import { openShop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'

const faults: Record<string, Fault> = { '/search/results/': 'drift' }
const standIns = await startStandIns({ faults })
t.teardown(() => standIns.stop())
const shop = await openShop(async () => ({
  CATALOG: 'catalog.yaml',
  STEAM_STORE_URL: `${standIns.url}/steam-store`,
  STEAM_API_URL: `${standIns.url}/steam-api`,
}))
t.teardown(() => shop.close())

t.test('shows in the status a source that has changed its format', async (t) => {
  const before = await (await fetch(`${shop.url}/status.json`)).json()
  t.match(before, {
    unavailable: [{ path: '/paid/streaming/hype', reason: 'not_configured' }, {}],
  })
  t.match(stateOf(before), { asked: 0, drifted: 0 })
  // A fallback answers instead.
  t.equal((await fetch(`${shop.url}/sample/gamestore/top-sellers?country=DE`)).status, 200)
  const response = await fetch(`${shop.url}/status.json`)
  t.match(response.headers.get('content-type'), /^application\/json/)
  const drift = { at: /Z$/, where: /\S/ }
  // Readers share a status that is up to a second old.
  await until('the status shows it', async () =>
    /"drifted":1/.test(JSON.stringify(stateOf(await (await fetch(`${shop.url}/status.json`)).json()))),
  )
  const shown = await fetch(`${shop.url}/status.json`)
  t.match(stateOf(await shown.json()), { failed: 0, drifted: 1, last_drift: drift })
})

function stateOf(status: unknown): unknown {
  const { sources } = status as { sources: readonly { readonly name: string }[] }
  return sources.find(({ name }) => name === 'steam-store')
}
