import t from 'tap'
import { MetricsBySource } from '../../../../src/service/sources/source-metrics.ts'
import type { Runtime } from '../../../../src/service/sources/source-runtime.ts'
import { standIns, storeAt, WORLD } from '../../../support/service/sources.ts'

const { signal } = new AbortController()

/** Every call is answered with this. */
function answering(body: unknown): Runtime {
  return { ...WORLD, fetch: async () => Response.json(body) }
}
const item = (more: object) => ({
  response: { store_items: [{ appid: 7, success: 1, name: 'Seven', ...more }] },
})

t.test('leaves packages out, and keeps the first place of a game that is listed twice', async (t) => {
  const logo = (path: string) => ({ name: 'x', logo: `https://host.example/${path}/capsule.jpg?t=1` })
  const items = ['apps/20', 'subs/21', 'apps/10/0f3a9c', 'bundles/5', 'apps/20', 'elsewhere/30'].map(logo)
  const store = storeAt('http://store.example', answering({ desc: '', items }))
  const found = await store.search('DE', 'all', 50, signal)
  t.same(
    found.map(({ appid }) => appid),
    [20, 10],
  )
})

t.test('treats an empty ranking as a failure, so that the next one is tried', async (t) => {
  const search = storeAt('http://store.example', answering({ items: [] }))
  await t.rejects(search.search('DE', 'all', 50, signal), { code: 'source_error' })
  const weekly = storeAt(await standIns(t), WORLD)
  await t.rejects(weekly.weekly('ID', 50, signal), { code: 'source_error' })
})

t.test('ranks and prices each country on its own', async (t) => {
  const store = storeAt(await standIns(t), WORLD)
  for (const [country, currency] of [
    ['US', 'USD'],
    ['DE', 'EUR'],
    ['JP', 'JPY'],
    ['SE', 'EUR'],
    ['TR', 'USD'],
  ] as const) {
    const [first, second] = await store.weekly(country, 50, signal)
    const [listed] = await store.search(country, 'all', 1, signal)
    t.equal(first?.title?.type, 'hardware')
    t.equal(second?.appid, listed?.appid, 'both charts of the country agree')
    const prices = [...(await store.items([4100000010, 4100000020], country, signal)).values()]
    t.same(
      prices.map(({ price }) => price?.currency),
      [currency, currency],
    )
  }
})

t.test('reads list price, price and release date of an item', async (t) => {
  const more = {
    type: 0,
    best_purchase_option: {
      final_price_in_cents: '499',
      original_price_in_cents: '1999',
      formatted_final_price: '4,99€',
      discount_pct: 75,
      active_discounts: [{ discount_end_date: 1734544800 }, {}],
    },
    reviews: {
      summary_filtered: { review_count: 1623, percent_positive: 84, review_score_label: 'Very Positive' },
    },
    release: { steam_release_date: 1627000000 },
    platforms: { windows: true, steamos_linux: true },
    assets: { asset_url_format: 'steam/apps/7/${FILENAME}?t=1', header: 'a$&b/header.jpg' },
  }
  const titles = await storeAt('http://store.example', answering(item(more))).items([7], 'DE', signal)
  t.strictSame(titles.get(7), {
    appid: 7,
    name: 'Seven',
    type: 'game',
    isFree: false,
    price: { amount: 4.99, amount_minor: 499, currency: 'EUR', formatted: '4,99€' },
    originalPrice: { amount: 19.99, amount_minor: 1999, currency: 'EUR', formatted: '€19.99' },
    discountPercent: 75,
    discountEndsAt: '2024-12-18T18:00:00.000Z',
    reviews: { label: 'Very Positive', percentPositive: 84, count: 1623 },
    releaseDate: '2021-07-23',
    platforms: ['windows', 'linux'],
    headerImage: 'https://shared.akamai.steamstatic.com/store_item_assets/steam/apps/7/a$&b/header.jpg?t=1',
  })
})

t.test('treats what the store leaves out as unknown', async (t) => {
  const bare = await storeAt('http://store.example', answering(item({}))).items([7], 'DE', signal)
  t.strictSame(bare.get(7), {
    appid: 7,
    name: 'Seven',
    type: null,
    isFree: false,
    price: null,
    originalPrice: null,
    discountPercent: 0,
    discountEndsAt: null,
    reviews: { label: null, percentPositive: null, count: null },
    releaseDate: null,
    platforms: null,
    headerImage: null,
  })
  for (const broken of [{ name: null }, { appid: null }]) {
    const store = storeAt('http://store.example', answering(item(broken)))
    await t.rejects(store.items([7], 'DE', signal), { code: 'source_error' }, JSON.stringify(broken))
  }
  for (const broken of [{ success: 15 }, { name: '' }]) {
    const none = await storeAt('http://store.example', answering(item(broken))).items([7], 'DE', signal)
    t.equal(none.size, 0, JSON.stringify(broken))
  }
})

t.test('gives a free game no price, whatever is sold inside', async (t) => {
  const more = { is_free: true, best_purchase_option: { final_price_in_cents: '999', discount_pct: 10 } }
  const titles = await storeAt('http://store.example', answering(item(more))).items([7], 'DE', signal)
  t.match(titles.get(7), { isFree: true, price: null, originalPrice: null, discountPercent: 0 })
})

t.test('reads a number from a number or from text', async (t) => {
  // The store writes both, as the readers of its items in public clients expect (serde with `lenient_i64`).
  const sold = (price: unknown, discount: unknown, count: unknown, percent: unknown) => ({
    best_purchase_option: { final_price_in_cents: price, discount_pct: discount },
    reviews: { summary_filtered: { review_count: count, percent_positive: percent } },
  })
  for (const more of [sold('499', 75, 1623, 84), sold(499, '75', '1623', '84')]) {
    const titles = await storeAt('http://store.example', answering(item(more))).items([7], 'US', signal)
    t.match(titles.get(7), {
      price: { amount_minor: 499 },
      discountPercent: 75,
      reviews: { count: 1623, percentPositive: 84 },
    })
  }
})

/** Eight sound items, and odd ones among them. */
const eight = (odd: object, count: number) => ({
  response: {
    store_items: Array.from({ length: 8 }, (_, place) => ({
      appid: place + 1,
      success: 1,
      name: `Game ${place}`,
      best_purchase_option: { final_price_in_cents: '499' },
      ...(place < count ? odd : {}),
    })),
  },
})

t.test('drops an odd row or its field, and keeps the rest of the answer', async (t) => {
  const records = new MetricsBySource(WORLD.now)
  const read = (odd: object) =>
    storeAt('http://store.example', answering(eight(odd, 1)), 5000, records).items([1], 'US', signal)
  const price = await read({ best_purchase_option: { formatted_final_price: '4,99€' } })
  t.equal(price.size, 8)
  t.equal(price.get(1)?.price, null)
  t.equal((await read({ name: 7 })).has(1), false)
  t.equal((await read({ release: { steam_release_date: 'soon' } })).get(1)?.releaseDate, null)
  const { figures } = records.of('steam-api')
  t.match(figures, { asked: 3, drifted: 0 })
  const field = 'response/store_items/#/best_purchase_option/final_price_in_cents: required'
  t.equal(figures.fields.get(field), 1)
})

t.test(
  'treats a field that most rows lack, or have in another form, as an outage of the source',
  async (t) => {
    for (const odd of [
      { name: null },
      { name: 7 },
      { appid: 'seven' },
      { best_purchase_option: { formatted_final_price: '4,99€' } },
      { platforms: [] },
    ]) {
      const few = storeAt('http://store.example', answering(eight(odd, 4)))
      t.ok((await few.items([1], 'US', signal)).size >= 4, `half: ${JSON.stringify(odd)}`)
      const most = storeAt('http://store.example', answering(eight(odd, 5)))
      await t.rejects(most.items([1], 'US', signal), { code: 'source_error' }, JSON.stringify(odd))
    }
  },
)

t.test('reads games on sale page by page, the best-selling first, with their total', async (t) => {
  // Pages, order and total as public clients of IStoreQueryService/Query read them in October 2026.
  const asked: { readonly start: number; readonly count: number; readonly sort: number }[] = []
  const shop = (total: number, fails: number): Runtime => ({
    ...WORLD,
    fetch: async (url) => {
      const { query } = JSON.parse(url.searchParams.get('input_json') ?? '')
      asked.push(query)
      if (query.start === fails) return new Response('', { status: 403 })
      const store_items = Array.from({ length: Math.min(query.count, total - query.start) }, (_, place) => ({
        appid: query.start + place + 1,
        success: 1,
        name: 'x',
        best_purchase_option: {
          final_price_in_cents: '500',
          original_price_in_cents: '1000',
          discount_pct: 50,
        },
        reviews: { summary_filtered: { review_count: 10, percent_positive: 80 } },
      }))
      return Response.json({ response: { metadata: { total_matching_records: total }, store_items } })
    },
  })
  const read = (total: number, fails = -1) =>
    storeAt('http://store.example', shop(total, fails)).discounted('US', signal)
  const some = await read(1234)
  t.match(some, { read: 1234, total: 1234, missingPages: 0, titles: { length: 1234 } })
  t.strictSame(
    asked.map(({ start, sort }) => [start, sort]),
    [
      [0, 10],
      [500, 10],
      [1000, 10],
    ],
  )
  t.match(await read(14_203), { read: 2000, total: 14_203 }, 'no more than the 2,000 best-selling')
  t.match(await read(1234, 500), { read: 734, total: 1234, missingPages: 1 }, 'a gap is said')
  await t.rejects(read(1234, 0), { code: 'source_error' })
})

t.test('drops an optional field of another type, and the item when the field is required', async (t) => {
  for (const drift of [
    { best_purchase_option: { final_price_in_cents: '4.99' } },
    { best_purchase_option: { formatted_final_price: '4,99€' } },
    { best_purchase_option: { final_price_in_cents: '499', discount_pct: 101 } },
    { is_free: 'yes' },
    { release: { steam_release_date: '2021' } },
    { release: { steam_release_date: 1e15 } },
    { platforms: [] },
  ]) {
    const store = storeAt('http://store.example', answering(item(drift)))
    t.match((await store.items([7], 'DE', signal)).get(7), { name: 'Seven' }, JSON.stringify(drift))
  }
  const nameless = storeAt('http://store.example', answering(item({ name: 7 })))
  await t.rejects(nameless.items([7], 'DE', signal), { code: 'source_error' })
})

t.test('refuses a price that its currency is unable to express', async (t) => {
  const more = { best_purchase_option: { final_price_in_cents: '1999' } }
  const store = storeAt('http://store.example', answering(item(more)))
  await t.rejects(store.items([7], 'JP', signal), { code: 'source_error' })
})

t.test('reads the currency of the front page, and tells free from fully discounted', async (t) => {
  const entry = {
    type: 0,
    name: 'x',
    currency: 'PLN',
    original_price: 5000,
    final_price: 2500,
    discount_percent: 50,
  }
  const items = [
    { ...entry, id: 1 },
    { ...entry, id: 2, type: 1 },
    { ...entry, id: 3, original_price: null, final_price: 0, discount_percent: 0 },
    { ...entry, id: 4, final_price: 0, discount_percent: 100 },
  ]
  const featured = await storeAt(
    'http://store.example',
    answering({ top_sellers: { items }, specials: { items: [] } }),
  ).featured('US', 'top_sellers', signal)
  t.match(
    featured.map(({ title }) => title),
    [
      { appid: 1, isFree: false, price: { amount: 25, currency: 'PLN' }, originalPrice: { amount: 50 } },
      { appid: 3, isFree: true, price: null, originalPrice: null },
      { appid: 4, isFree: false, price: { amount: 0 }, originalPrice: { amount: 50 }, discountPercent: 100 },
    ],
  )
  t.equal(featured.length, 3)
})
