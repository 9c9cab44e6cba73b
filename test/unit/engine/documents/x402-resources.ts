import t from 'tap'
import { at, compileHarbour, FACTS, HARBOUR, items, renderJson } from '../../../support/documents.ts'

t.test('lists exactly what the live 402 offers, with what helps to choose', async (t) => {
  const catalog = compileHarbour()
  const [tides] = items(at(renderJson('x402-resources', catalog), 'items'))
  const [route] = catalog.routes
  const challenge = route === undefined ? undefined : FACTS.paymentRequired(route)
  t.strictSame(tides, {
    resource: 'https://harbour.example/paid/tides/bristol',
    type: 'http',
    x402Version: 2,
    accepts: challenge?.accepts,
    lastUpdated: '2026-03-05T00:00:00.000Z',
    description: 'Returns the next high and low waters of a port',
    mimeType: 'application/json',
    serviceName: 'Harbour data',
    tags: ['tides', 'ships'],
    iconUrl: 'https://harbour.example/favicon.svg',
    extensions: { bazaar: { info: { input: { type: 'http', method: 'GET' } }, schema: {} } },
    method: 'GET',
    path: '/paid/tides/{port}',
    routeTemplate: '/paid/tides/:port',
    priceUsd: '0.005000',
    title: 'Tides',
    useCase: 'You plan an arrival and know the port.',
    sample: '/sample/tides',
    docs: 'https://harbour.example/docs/paid_tides_port',
    available: true,
  })
})

t.test('lists and counts each paid route once', async (t) => {
  const listing = renderJson('x402-resources')
  t.equal(at(listing, 'x402Version'), 2)
  t.strictSame(
    items(at(listing, 'items')).map((item) => at(item, 'path')),
    ['/paid/tides/{port}', '/paid/ships/moves', '/paid/berths/{berth}'],
  )
  t.strictSame(at(listing, 'pagination'), { limit: 3, offset: 0, total: 3 })
  t.equal(at(listing, 'items', 1, 'routeTemplate'), undefined)
})

t.test('marks a route that is unavailable now', async (t) => {
  const facts = { ...FACTS, available: ({ id }: { id: string }) => id !== 'tides' }
  const listing = renderJson('x402-resources', compileHarbour(), facts)
  t.strictSame(
    items(at(listing, 'items')).map((item) => at(item, 'available')),
    [false, true, true],
  )
})

t.test('is empty when x402 is switched off', async (t) => {
  const listing = renderJson('x402-resources', compileHarbour(), {
    ...FACTS,
    paymentRequired: () => undefined,
  })
  t.strictSame(listing, { x402Version: 2, items: [], pagination: { limit: 0, offset: 0, total: 0 } })
})

t.test('keeps the same date at every request for a catalog without one', async (t) => {
  const undated = compileHarbour(HARBOUR.replace("  updated: '2026-03-05'\n", ''))
  t.equal(at(renderJson('x402-resources', undated), 'items', 0, 'lastUpdated'), '2026-01-01T00:00:00.000Z')
})
