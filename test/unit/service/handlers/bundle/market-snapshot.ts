import t from 'tap'
import { Failure, type EnvelopedAnswer, type JsonObject } from '../../../../../src/engine/handler.ts'
import { marketSnapshot } from '../../../../../src/service/handlers/bundle/market-snapshot.ts'
import { enveloped, fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { trimmed } from '../../../../support/service/answer-shape.ts'
import { openWholeService } from '../../../../support/service/shipped-handlers.ts'

const SNAPSHOT = '/paid/bundle/market-snapshot'
const SEARCH = '/search/results/'
const ITEMS = '/IStoreBrowseService/GetItems/v1/'
const QUERY = '/IStoreQueryService/Query/v1/'
const USUAL = { countries: ['US', 'DE', 'JP'], deals_count: 30, hype_limit: 15 }

const chart = (...appids: number[]): JsonObject => ({ items: appids.map((appid) => ({ appid })) })

/** A snapshot of parts that are answered by hand; a code is a failure. */
async function compose(
  countries: readonly string[],
  parts: Readonly<Record<string, JsonObject | 'source_error' | 'not_configured'>>,
): Promise<EnvelopedAnswer> {
  const ask: Parameters<typeof fixedContext>[0] = {
    ask: async (handler, { country = '' }) => {
      const of = typeof country === 'string' ? country : ''
      const body = parts[`${handler} ${of}`.trim()] ?? 'source_error'
      if (typeof body === 'string') throw new Failure(body, 'It does not work')
      const at = new Date('2026-11-20T19:55:00Z')
      return { answer: { source: [{ name: handler }], body }, at, cached: true, stale: false }
    },
  }
  return enveloped(await marketSnapshot.run({ ...USUAL, countries }, fixedContext(ask)))
}

t.test('costs the sources as many calls for three countries as the parts do', async (t) => {
  const { serve, asked } = await openWholeService(t)
  const { body } = await serve(SNAPSHOT, USUAL)
  const store = Array.from(asked).filter(([path]) => path.startsWith('/steam'))
  t.strictSame(Object.fromEntries(store), {
    [`/steam-store${SEARCH}`]: 3,
    [`/steam-api${ITEMS}`]: 3,
    [`/steam-api${QUERY}`]: 1,
  })
  t.strictSame(body['countries'], ['US', 'DE', 'JP'])
  t.match(body, {
    top_sellers: { US: { currency: 'USD', count: 25 }, DE: { currency: 'EUR' }, JP: { currency: 'JPY' } },
    deals: { pool_size: 14, count: 11 },
  })
})

t.test('shares fetched data between single routes, samples, filters and the snapshot', async (t) => {
  const { serve, asked } = await openWholeService(t)
  await serve(SNAPSHOT, USUAL)
  const before = Object.fromEntries(asked)
  await serve('/paid/gamestore/top-sellers', { country: 'DE' })
  await serve('/sample/gamestore/top-sellers', { country: 'JP' })
  await serve('/paid/gamestore/deals', { min_discount: 50, min_review: 10, count: 7 })
  await serve('/sample/gamestore/deals', { min_discount: 1, min_review: 1, count: 100 })
  await serve('/sample/bundle/market-snapshot', { countries: ['US'], deals_count: 3, hype_limit: 3 })
  await serve(SNAPSHOT, { ...USUAL, countries: ['JP', 'US'], deals_count: 5 })
  t.strictSame(Object.fromEntries(asked), before)
})

t.test('reads deals again after exactly ten minutes, for any request', async (t) => {
  const { serve, asked, pass } = await openWholeService(t)
  const count = () => asked.get(`/steam-api${QUERY}`)
  const first = await serve('/paid/gamestore/deals', { min_discount: 20, min_review: 60, count: 30 })
  pass(9 * 60_000)
  await serve('/paid/gamestore/deals', { min_discount: 21, min_review: 60, count: 30 })
  t.equal(count(), 1)
  pass(61_000)
  await serve('/paid/gamestore/deals', { min_discount: 21, min_review: 60, count: 30 })
  t.equal(count(), 2, 'an answer made late from the pool is no fresher than the pool')
  const again = await serve('/paid/gamestore/deals', { min_discount: 20, min_review: 60, count: 30 })
  t.strictSame(again.body, first.body)
  t.equal(count(), 2)
})

t.test('gives older deals with their age for an hour when the store goes away', async (t) => {
  const { serve, faults, pass } = await openWholeService(t)
  const DEALS = { min_discount: 20, min_review: 60, count: 30 }
  await serve('/paid/gamestore/deals', DEALS)
  for (const path of [QUERY, SEARCH, ITEMS, '/api/featuredcategories/']) faults[path] = 'html'
  pass(30 * 60_000)
  const older = await serve('/paid/gamestore/deals', { ...DEALS, min_review: 61 })
  t.match(older.warnings, [{ code: 'stale', message: /30 minutes ago/ }])
  pass(60 * 60_000)
  await t.rejects(serve('/paid/gamestore/deals', { ...DEALS, min_review: 62 }), { code: 'source_error' })
})

t.test('tells what sells everywhere from what sells in one country only', async (t) => {
  const { body } = await compose(['US', 'DE', 'JP'], {
    'gamestore/top-sellers US': chart(1, 2, 3),
    'gamestore/top-sellers DE': chart(3, 1, 4),
    'gamestore/top-sellers JP': chart(1, 5, 3),
    'gamestore/deals': {},
    'streaming/hype': {},
  })
  t.strictSame(body['cross_market'], { in_all: [1, 3], unique: { US: [2], DE: [4], JP: [5] } })
})

t.test('leaves the comparison out for a single country', async (t) => {
  const { body } = await compose(['US'], {
    'gamestore/top-sellers US': chart(1),
    'gamestore/deals': {},
    'streaming/hype': {},
  })
  t.equal(body['cross_market'], null)
})

t.test('names parts that fail, puts null in their place, and sells the others', async (t) => {
  const answer = await compose(['US', 'DE', 'JP'], {
    'gamestore/top-sellers US': chart(1, 2),
    'gamestore/top-sellers DE': 'source_error',
    'gamestore/top-sellers JP': chart(2),
    'gamestore/deals': { count: 0 },
    'streaming/hype': 'not_configured',
  })
  t.strictSame(answer.warnings, [
    { code: 'upstream_unavailable', message: 'Without top sellers of DE: It does not work' },
    { code: 'not_configured', message: 'Without streaming hype: It does not work' },
  ])
  t.match(answer.body, {
    top_sellers: { DE: null },
    hype: null,
    cross_market: { in_all: [2], unique: { US: [1], JP: [] } },
  })
  t.notOk('DE' in (answer.body['cross_market'] as { unique: object }).unique)
})

t.test('refuses when deals, or every country, are missing', async (t) => {
  const parts = { 'gamestore/top-sellers US': chart(1), 'gamestore/deals': {}, 'streaming/hype': {} }
  await t.rejects(compose(['US'], { ...parts, 'gamestore/deals': 'source_error' }), { code: 'source_error' })
  await t.rejects(compose(['DE', 'JP'], parts), { code: 'source_error' })
})

t.test('is as old as its oldest part, names every source once, and dates each part', async (t) => {
  const answer = await compose(['US', 'DE'], {
    'gamestore/top-sellers US': chart(1),
    'gamestore/top-sellers DE': chart(1),
    'gamestore/deals': { count: 0 },
    'streaming/hype': {},
  })
  t.strictSame(answer.fetchedAt, new Date('2026-11-20T19:55:00Z'))
  t.strictSame(answer.source, [
    { name: 'gamestore/top-sellers' },
    { name: 'gamestore/deals' },
    { name: 'streaming/hype' },
  ])
  t.strictSame(answer.body['deals'], { fetched_at: '2026-11-20T19:55:00.000Z', warnings: [], count: 0 })
})

t.test('shows three sellers, three deals and three categories in the free sample', async (t) => {
  const { send } = await openWholeService(t)
  const sample = await send('/sample/bundle/market-snapshot', {
    countries: ['DE'],
    deals_count: 3,
    hype_limit: 3,
  })
  t.match(sample, {
    countries: ['DE'],
    top_sellers: { DE: { currency: 'EUR', count: 3, items: { length: 3 } } },
    deals: { count: 3, items: { length: 3 } },
    cross_market: null,
    preview: true,
    truncated: true,
    full: { path: SNAPSHOT },
  })
})

t.test('publishes an example that equals the stand-ins’ answer, cut short', async (t) => {
  const { serve } = await openWholeService(t)
  const { body, warnings } = await serve(SNAPSHOT, USUAL)
  t.strictSame(warnings, [], 'no part is missing')
  t.strictSame(publishedExample('bundle/market-snapshot'), trimmed(body))
})
