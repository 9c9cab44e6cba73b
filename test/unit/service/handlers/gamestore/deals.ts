import t from 'tap'
import {
  Failure,
  type Context,
  type EnvelopedAnswer,
  type JsonObject,
} from '../../../../../src/engine/handler.ts'
import type { Fault } from '../../../../../src/service/stand-ins/fault.ts'
import { deals } from '../../../../../src/service/handlers/gamestore/deals.ts'
import { scoreValue } from '../../../../../src/service/handlers/gamestore/value-score.ts'
import type { Runtime } from '../../../../../src/service/sources/source-runtime.ts'
import { publishedExample } from '../../../../support/handler-context.ts'
import { context, standIns, storeAt, watched, WORLD } from '../../../../support/service/sources.ts'
import { MALFORMED_CASES, assertClean, changes, spoiling } from '../../../../support/service/malformed.ts'
import { fc } from '../../../../support/fast-check.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const QUERY = '/IStoreQueryService/Query/v1/'
const ITEMS = '/IStoreBrowseService/GetItems/v1/'
const SEARCH = '/search/results/'
const FEATURED = '/api/featuredcategories/'
const USUAL = { min_discount: 20, min_review: 60, count: 30 }

type Row = Readonly<Record<string, unknown>>

interface Terms {
  readonly filters?: Partial<typeof USUAL>
  readonly runtime?: Runtime
  readonly timeoutMs?: number
  readonly with?: Context
}

async function run(url: string, terms: Terms = {}): Promise<EnvelopedAnswer> {
  const { filters, runtime = WORLD, timeoutMs = 5000 } = terms
  const store = storeAt(url, runtime, timeoutMs)
  return checkedAnswer(
    'gamestore/deals',
    await deals(store).run({ ...USUAL, ...filters }, terms.with ?? context()),
  )
}
function rows({ body }: { readonly body: JsonObject }): Row[] {
  return body['items'] as unknown as Row[]
}
function codes({ warnings = [] }: EnvelopedAnswer): string[] {
  return warnings.map(({ code }) => code)
}

t.test('gives all good deals, best first, from one call', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const answer = await run(await standIns(t), { runtime })
  t.same(asked, [`/steam-api${QUERY}`])
  t.match(answer.body, { country: 'US', currency: 'USD', pool_size: 14, matched: 11, count: 11 })
  t.same(answer.warnings, [])
  const scores = rows(answer).map(({ value_score: score }) => Number(score))
  t.strictSame(
    scores,
    scores.toSorted((one, other) => other - one),
  )
  t.strictSame(
    rows(answer).map(({ rank }) => rank),
    scores.map((_, place) => place + 1),
  )
  t.equal(new Set(rows(answer).map(({ appid }) => appid)).size, 11, 'pages that overlap list no game twice')
})

t.test('shows the components and figures that every score is computed from', async (t) => {
  for (const row of rows(await run(await standIns(t)))) {
    const { review_percent_positive: percent, review_count: count, savings } = row
    const { score, components } = scoreValue({
      discountPercent: Number(row['discount_percent']),
      positiveReviews: Math.round((Number(percent) * Number(count)) / 100),
      reviews: Number(count),
      savedUsd: (savings as { amount: number }).amount,
    })
    t.strictSame([row['value_score'], row['components']], [score, components])
  }
})

t.test('filters by price and reviews, and counts afterwards', async (t) => {
  const url = await standIns(t)
  const some = await run(url, { filters: { min_discount: 40, min_review: 85, count: 2 } })
  t.match(some.body, { matched: 3, count: 2, filters: { min_discount: 40, min_review: 85, count: 2 } })
  for (const row of rows(some)) {
    t.ok(Number(row['discount_percent']) >= 40 && Number(row['review_percent_positive']) >= 85)
  }
  const all = await run(url, { filters: { min_discount: 0, min_review: 0, count: 100 } })
  t.match(all.body, { matched: 14, count: 14 })
  const none = await run(url, { filters: { min_discount: 100 } })
  t.match(none.body, { pool_size: 14, matched: 0, count: 0, items: [] }, 'nothing found is an answer')
})

t.test('leaves out games without a price, a discount or enough reviews', async (t) => {
  const option = {
    final_price_in_cents: '500',
    original_price_in_cents: '1000',
    discount_pct: 50,
  }
  const reviews = { summary_filtered: { review_count: 10, percent_positive: 80 } }
  const good = { success: 1, type: 0, name: 'x', best_purchase_option: option, reviews }
  const store_items = [
    { ...good, appid: 1 },
    { ...good, appid: 2, reviews: { summary_filtered: { review_count: 9, percent_positive: 80 } } },
    { ...good, appid: 3, reviews: {} },
    { ...good, appid: 4, best_purchase_option: null },
    { ...good, appid: 5, is_free: true },
    { ...good, appid: 6, best_purchase_option: { ...option, discount_pct: 0 } },
    { ...good, appid: 7, best_purchase_option: { ...option, final_price_in_cents: '0' } },
    { ...good, appid: 8, best_purchase_option: { ...option, final_price_in_cents: '1001' } },
    { ...good, appid: 9, type: 10 },
    { ...good, appid: 10, success: 15 },
  ]
  const runtime: Runtime = { ...WORLD, fetch: async () => Response.json({ response: { store_items } }) }
  const answer = await run('http://store.example', { runtime, filters: { min_review: 0, min_discount: 0 } })
  t.same(
    rows(answer).map(({ appid }) => appid),
    [1],
  )
})

t.test('ranks equal scores by reviews, then by age', async (t) => {
  const game = (appid: number, review_count: number) => ({
    success: 1,
    type: 0,
    name: 'x',
    appid,
    best_purchase_option: {
      final_price_in_cents: '500',
      original_price_in_cents: '1000',
      discount_pct: 50,
    },
    reviews: { summary_filtered: { review_count, percent_positive: 100 } },
  })
  const store_items = [game(8, 1_000_000), game(7, 1_000_000), game(9, 1_100_000)]
  const runtime: Runtime = { ...WORLD, fetch: async () => Response.json({ response: { store_items } }) }
  t.same(
    rows(await run('http://store.example', { runtime })).map(({ appid }) => appid),
    [9, 7, 8],
  )
})

t.test('uses the discounted top sellers, with a warning, when the query fails', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const answer = await run(await standIns(t, { [QUERY]: 'drift' }), { runtime })
  t.same(asked, [`/steam-api${QUERY}`, `/steam-store${SEARCH}`, `/steam-api${ITEMS}`])
  t.same(codes(answer), ['pool_fallback'])
  t.match(answer.body, { pool_size: 14, matched: 11 })
})

t.test('uses the special offers of the front page when the search fails too', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const answer = await run(await standIns(t, { [QUERY]: '403', [SEARCH]: 'html' }), { runtime })
  const [query, search, ...rest] = asked
  t.same([query, search], [`/steam-api${QUERY}`, `/steam-store${SEARCH}`])
  t.same(rest, [`/steam-store${FEATURED}`, `/steam-api${ITEMS}`])
  t.same(codes(answer), ['pool_fallback'])
  t.match(answer.body, { pool_size: 9 })
})

t.test('refuses, uncharged, when the reviews are missing', async (t) => {
  const url = await standIns(t, { [QUERY]: 'empty', [ITEMS]: 'html' })
  const { runtime, asked } = watched(WORLD)
  await t.rejects(run(url, { runtime }), { code: 'source_error' })
  t.same(asked, [`/steam-api${QUERY}`, `/steam-store${SEARCH}`, `/steam-api${ITEMS}`], 'items are asked once')
})

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['html', 'source_error'],
  ['empty', 'source_error'],
  ['truncated', 'source_error'],
  ['huge', 'source_error'],
  ['drift', 'source_error'],
  ['500', 'source_error'],
  ['null429', 'source_limited'],
  ['hang', 'source_timeout'],
]
for (const [fault, code] of FAULTS) {
  t.test(`answers ${code} when everything answers ${fault}`, async (t) => {
    const paths = [QUERY, ITEMS, SEARCH, FEATURED]
    const url = await standIns(t, Object.fromEntries(paths.map((path) => [path, fault])))
    const timeoutMs = code === 'source_timeout' ? 60 : 5000
    const error = await run(url, { timeoutMs }).catch((thrown: unknown) => thrown)
    if (!(error instanceof Failure)) return t.fail('It must be a Failure')
    t.equal(error.code, code)
    t.notMatch(error.detail, /http|127|\d{3}|fetch|Unexpected|token/)
  })
}

t.test('states the age of an older list, in every answer made of it', async (t) => {
  const url = await standIns(t)
  const at = new Date(Date.now() - 30 * 60_000)
  const older: Context = {
    ...context(),
    keep: async (_name, _keeping, _isValue, produce) => ({
      value: await produce(new AbortController().signal, undefined),
      at,
      stale: true,
    }),
  }
  const answer = await run(url, { with: older })
  t.equal(answer.fetchedAt, at)
  t.match(answer.warnings, [{ code: 'stale', message: /30 minutes ago/ }])
})

t.test('shows the three best deals, without their components, in the free sample', async (t) => {
  const url = await standIns(t)
  const answer = await run(url)
  const sample = deals(storeAt(url, WORLD)).preview(answer.body)
  t.match(sample, { matched: 11, count: 3 })
  const expected = rows(answer)
    .slice(0, 3)
    .map(({ components: _components, ...row }) => row)
  t.strictSame(rows({ body: sample }), expected)
})

t.test('publishes an example that equals the stand-ins’ answer, cut to two', async (t) => {
  const answer = await run(await standIns(t))
  const items = rows(answer).slice(0, 2)
  t.strictSame(publishedExample('gamestore/deals'), { ...answer.body, count: 2, items })
})

const places = fc.constantFrom(
  { path: QUERY, down: [] },
  { path: SEARCH, down: [QUERY] },
  { path: ITEMS, down: [QUERY] },
  { path: FEATURED, down: [QUERY, SEARCH] },
)

t.test(`gives a complete body or a Failure for ${MALFORMED_CASES} malformed answers`, async (t) => {
  const url = await standIns(t)
  const outcomes = { answered: 0, failed: 0 }
  const property = fc.asyncProperty(places, changes, async (place, made) => {
    const runtime = spoiling(WORLD, place, made)
    const answer = await run(url, { runtime }).catch((error: unknown) => {
      if (error instanceof Failure && error.code === 'source_error') return undefined
      throw error
    })
    outcomes[answer ? 'answered' : 'failed'] += 1
    if (!answer) return
    assertClean(answer.body)
    for (const { value_score: score, savings } of rows(answer)) {
      if (!(Number(score) > 0 && Number(score) <= 100)) throw new Error(`score ${String(score)}`)
      if (!((savings as { amount: number }).amount > 0)) throw new Error('nothing saved')
    }
  })
  await fc.assert(property, { numRuns: MALFORMED_CASES })
  t.ok(outcomes.answered > 0 && outcomes.failed > 0, 'both ways were taken')
})
