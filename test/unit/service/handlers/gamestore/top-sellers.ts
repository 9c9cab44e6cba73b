import { readFileSync } from 'node:fs'
import t from 'tap'
import { Failure, InvalidParameter, type EnvelopedAnswer } from '../../../../../src/engine/handler.ts'
import type { Fault } from '../../../../../src/service/stand-ins/fault.ts'
import { topSellers } from '../../../../../src/service/handlers/gamestore/top-sellers.ts'
import type { Runtime } from '../../../../../src/service/sources/source-runtime.ts'
import { context, standIns, storeAt, watched, WORLD } from '../../../../support/service/sources.ts'
import { MALFORMED_CASES, assertClean, changes, spoiling } from '../../../../support/service/malformed.ts'
import { fc } from '../../../../support/fast-check.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const SEARCH = '/search/results/'
const ITEMS = '/IStoreBrowseService/GetItems/v1/'
const FEATURED = '/api/featuredcategories/'
const WEEKLY = '/IStoreTopSellersService/GetWeeklyTopSellers/v1/'
const PATHS = [SEARCH, ITEMS, FEATURED, WEEKLY]

type Row = Readonly<Record<string, unknown>>

async function run(
  url: string,
  country: string,
  runtime: Runtime = WORLD,
  timeoutMs = 5000,
): Promise<EnvelopedAnswer> {
  const answer = await topSellers(storeAt(url, runtime, timeoutMs)).run({ country }, context())
  return checkedAnswer('gamestore/top-sellers', answer)
}
function rows({ body }: EnvelopedAnswer): Row[] {
  return body.items as unknown as Row[]
}
function codes({ warnings = [] }: EnvelopedAnswer): string[] {
  return warnings.map(({ code }) => code)
}

t.test('gives 25 games with prices in euro for Germany, from two calls', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const answer = await run(await standIns(t), 'DE', runtime)
  t.match(answer.body, { country: 'DE', currency: 'EUR', ranking: 'steam_store_topsellers', count: 25 })
  t.same(asked, [`/steam-store${SEARCH}`, `/steam-api${ITEMS}`])
  const items = rows(answer)
  t.equal(items.length, 25)
  t.strictSame(items[1], {
    rank: 2,
    appid: 4100000210,
    name: 'Copperhare Derby',
    type: 'game',
    url: 'https://store.steampowered.com/app/4100000210/',
    is_free: false,
    price: { amount: 16.99, amount_minor: 1699, currency: 'EUR', formatted: '€16.99' },
    original_price: { amount: 19.99, amount_minor: 1999, currency: 'EUR', formatted: '€19.99' },
    discount_percent: 15,
    review_score_desc: 'Positive',
    review_percent_positive: 80,
    review_count: 6650,
    release_date: '2025-05-15',
    platforms: ['windows', 'mac'],
    header_image:
      'https://shared.akamai.steamstatic.com/store_item_assets/steam/apps/4100000210/header.jpg?t=1',
  })
  const free = items.find(({ name }) => name === 'Emberquill Online')
  t.match(free, { is_free: true, price: null, original_price: null, discount_percent: 0 })
})

t.test('says that an answer came from the sandbox', async (t) => {
  const { source } = await run(await standIns(t), 'US')
  t.strictSame(source, [{ name: 'Sandbox stand-in for the game store' }])
})

t.test('lists each game once, and leaves packages out', async (t) => {
  const items = rows(await run(await standIns(t), 'DE'))
  t.equal(new Set(items.map(({ appid }) => appid)).size, items.length)
  t.notOk(items.some(({ name }) => name === 'Gearmoth Hollow: Collected'))
})

t.test('leaves a game without data out, says so, and keeps the ranks of the others', async (t) => {
  const answer = await run(await standIns(t), 'DE')
  t.strictSame(answer.warnings, [
    {
      code: 'titles_missing',
      message: 'Ranked, but without data in this country, and left out: 1',
      source: 'Sandbox stand-in for the game store',
    },
  ])
  const ranks = rows(answer).map(({ rank }) => rank)
  t.strictSame(
    ranks,
    Array.from({ length: 26 }, (_, place) => place + 1).filter((rank) => rank !== 21),
  )
})

t.test('states prices in yen in whole yen', async (t) => {
  const priced = rows(await run(await standIns(t), 'jp ')).find(({ name }) => name === 'Glasswort Colony')
  t.strictSame(priced?.price, { amount: 899, amount_minor: 899, currency: 'JPY', formatted: '¥899' })
})

t.test('reads a country as people write it, and refuses others', async (t) => {
  const url = await standIns(t)
  t.equal((await run(url, ' uk')).body.country, 'GB')
  for (const country of ['', 'D', 'DEU', 'Germany', 'D1', '../', 'ß'])
    await t.rejects(run(url, country), InvalidParameter, country)
})

t.test('marks an assumed currency', async (t) => {
  const answer = await run(await standIns(t), 'KE')
  t.equal(answer.body.currency, 'USD')
  t.ok(codes(answer).includes('currency_assumed'))
})

t.test('uses the front page, with details and a warning, when the live ranking fails', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const answer = await run(await standIns(t, { [SEARCH]: 'html' }), 'DE', runtime)
  t.match(answer.body, { ranking: 'steam_store_featured', currency: 'EUR', count: 8 })
  t.same(codes(answer), ['ranking_fallback'])
  t.same(asked, [`/steam-store${SEARCH}`, `/steam-store${FEATURED}`, `/steam-api${ITEMS}`])
  t.match(rows(answer)[1], { rank: 2, name: 'Copperhare Derby', type: 'game', review_count: 6650 })
  t.notOk(
    rows(answer).some(({ name }) => name === 'Quarrel Handheld 2'),
    'hardware is no game',
  )
})

t.test('uses the prices of the front page when the details fail, and asks for them once', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const answer = await run(await standIns(t, { [ITEMS]: 'drift' }), 'DE', runtime)
  t.match(answer.body, { ranking: 'steam_store_featured', currency: 'EUR' })
  t.same(codes(answer), ['ranking_fallback', 'details_missing'])
  t.same(asked, [`/steam-store${SEARCH}`, `/steam-api${ITEMS}`, `/steam-store${FEATURED}`])
  t.match(rows(answer)[1], {
    name: 'Copperhare Derby',
    type: null,
    price: { amount: 16.99, currency: 'EUR' },
    original_price: { amount: 19.99 },
    review_count: null,
    release_date: null,
    platforms: null,
  })
})

t.test('uses the front page when a batch knows none of the games', async (t) => {
  const fetch: Runtime['fetch'] = async (address, options) =>
    address.pathname.endsWith(ITEMS)
      ? Response.json({ response: { store_items: [{ appid: 4100000010, success: 15 }] } })
      : WORLD.fetch(address, options)
  const answer = await run(await standIns(t), 'DE', { ...WORLD, fetch })
  t.match(answer.body, { ranking: 'steam_store_featured', currency: 'EUR' })
  t.same(codes(answer), ['ranking_fallback', 'details_missing'])
})

t.test('uses the weekly chart when the front page fails too', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const answer = await run(await standIns(t, { [SEARCH]: 'html', [FEATURED]: 'empty' }), 'DE', runtime)
  t.match(answer.body, { ranking: 'steam_weekly_top_sellers', currency: 'EUR', count: 25 })
  t.same(codes(answer), ['ranking_fallback'])
  t.same(asked, [`/steam-store${SEARCH}`, `/steam-store${FEATURED}`, `/steam-api${WEEKLY}`])
  t.match(rows(answer)[0], { rank: 1, name: 'Skarn Republic', type: 'game' }, 'hardware takes no rank')
})

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['html', 'source_error'],
  ['empty', 'source_error'],
  ['truncated', 'source_error'],
  ['reset', 'source_error'],
  ['huge', 'source_error'],
  ['drift', 'source_error'],
  ['redirect', 'source_error'],
  ['403', 'source_error'],
  ['404', 'source_error'],
  ['500', 'source_error'],
  ['null429', 'source_limited'],
  ['429', 'source_limited'],
  ['hang', 'source_timeout'],
  ['drip', 'source_timeout'],
]
for (const [fault, code] of FAULTS) {
  t.test(`answers ${code} when everything answers ${fault}`, async (t) => {
    const url = await standIns(t, Object.fromEntries(PATHS.map((path) => [path, fault])))
    const error = await run(url, 'DE', WORLD, code === 'source_timeout' ? 60 : 5000).catch(
      (thrown: unknown) => thrown,
    )
    if (!(error instanceof Failure)) return t.fail('It must be a Failure')
    t.equal(error.code, code)
    t.equal(error.retryAfter, { null429: 30, 429: 7 }[fault as string])
    t.notMatch(error.detail, /http|127|\d{3}|fetch|Unexpected|token/)
  })
}

t.test('stops trying further sources at the deadline of the request', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const url = await standIns(t, { [SEARCH]: 'hang' })
  const store = storeAt(url, runtime)
  const work = topSellers(store).run({ country: 'DE' }, context(AbortSignal.timeout(50)))
  await t.rejects(work, { code: 'source_timeout' })
  t.same(asked, [`/steam-store${SEARCH}`])
})

t.test('shows five games with their final price in the free sample', async (t) => {
  const url = await standIns(t)
  const { preview } = topSellers(storeAt(url, WORLD))
  const sample = preview((await run(url, 'DE')).body)
  t.same(Object.keys(sample), ['country', 'currency', 'count', 'items'])
  t.match(sample, { country: 'DE', currency: 'EUR', count: 5 })
  const items = sample.items as unknown as Row[]
  t.equal(items.length, 5)
  t.strictSame(items[1], {
    rank: 2,
    appid: 4100000210,
    name: 'Copperhare Derby',
    price: { amount: 16.99, amount_minor: 1699, currency: 'EUR', formatted: '€16.99' },
    discount_percent: 15,
  })
})

t.test('publishes an example that equals the stand-ins’ answer, cut to two', async (t) => {
  const file = new URL(
    '../../../../../src/service/handlers/gamestore/top-sellers.example.json',
    import.meta.url,
  )
  const answer = await run(await standIns(t), 'US')
  const items = rows(answer).slice(0, 2)
  t.strictSame(JSON.parse(readFileSync(file, 'utf8')), { ...answer.body, count: 2, items })
})

/** The answer that is changed, and the sources that fail before it so that it is requested. */
const targets = fc.constantFrom(
  { path: SEARCH, down: [] },
  { path: ITEMS, down: [] },
  { path: FEATURED, down: [SEARCH] },
  { path: FEATURED, down: [ITEMS] },
  { path: WEEKLY, down: [SEARCH, FEATURED] },
)

t.test(`gives a complete body or a Failure for ${MALFORMED_CASES} malformed answers`, async (t) => {
  const url = await standIns(t)
  const outcomes = { answered: 0, failed: 0 }
  const property = fc.asyncProperty(targets, changes, async (place, made) => {
    const answer = await run(url, 'DE', spoiling(WORLD, place, made)).catch((error: unknown) => {
      if (error instanceof Failure && error.code === 'source_error') return undefined
      throw error
    })
    outcomes[answer ? 'answered' : 'failed'] += 1
    if (!answer) return
    assertClean(answer.body)
    if (rows(answer).length !== answer.body.count) throw new Error('count differs')
    if (rows(answer).some((row) => !isSound(row))) throw new Error(`Unsound: ${JSON.stringify(answer.body)}`)
  })
  await fc.assert(property, { numRuns: MALFORMED_CASES })
  t.ok(outcomes.answered > 0 && outcomes.failed > 0, 'both ways were taken')
})

function isSound({ rank, appid, name, discount_percent: percent }: Row): boolean {
  const whole = [rank, appid, percent].every((value) => Number.isSafeInteger(value) && Number(value) >= 0)
  return whole && typeof name === 'string' && name !== ''
}
