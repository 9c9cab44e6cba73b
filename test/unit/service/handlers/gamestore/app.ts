import t from 'tap'
import {
  Failure,
  type Context,
  type EnvelopedAnswer,
  type JsonObject,
} from '../../../../../src/engine/handler.ts'
import type { Fault } from '../../../../../src/service/stand-ins/fault.ts'
import { app } from '../../../../../src/service/handlers/gamestore/app.ts'
import type { Runtime } from '../../../../../src/service/sources/source-runtime.ts'
import { publishedExample } from '../../../../support/handler-context.ts'
import {
  context,
  standIns,
  steamSpyAt,
  storeAt,
  watched,
  WORLD,
} from '../../../../support/service/sources.ts'
import { MALFORMED_CASES, assertClean, changes, spoiling } from '../../../../support/service/malformed.ts'
import { fc } from '../../../../support/fast-check.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const GAME = 4100000050
const FREE = 4100000030
/** The stand-in shows no page of it, but an entry in the batch. */
const PAGELESS = 4100000060
const UNCOUNTED = 4100000320
/** SteamSpy may not show it. */
const UNSPIED = 4100000140
const UNKNOWN = 4294967295

const PAGE = '/api/appdetails'
const ITEMS = '/IStoreBrowseService/GetItems/v1/'
const REVIEWS = `/appreviews/${GAME}`
const PLAYERS = '/ISteamUserStats/GetNumberOfCurrentPlayers/v1/'
const SPY = '/api.php'
const PARTS = [PAGE, REVIEWS, PLAYERS, SPY]

interface Terms {
  readonly appid?: number
  readonly runtime?: Runtime
  readonly timeoutMs?: number
  readonly with?: Context
}

async function run(url: string, terms: Terms = {}): Promise<EnvelopedAnswer> {
  const { appid = GAME, runtime = WORLD, timeoutMs = 5000 } = terms
  const handler = app(storeAt(url, runtime, timeoutMs), steamSpyAt(url, runtime, timeoutMs))
  const moment = { ...context(), now: () => new Date('2026-11-20T20:00:00Z') }
  return checkedAnswer('gamestore/app', await handler({ appid }, terms.with ?? moment))
}
function codes({ warnings = [] }: EnvelopedAnswer): string[] {
  return warnings.map(({ code, source = '' }) => `${code} ${source.replace('Sandbox stand-in for ', '')}`)
}
function details({ body }: EnvelopedAnswer): JsonObject {
  return body['details'] as JsonObject
}

t.test('gives page, players, reviews and owners of an app from four simultaneous calls', async (t) => {
  const { runtime, asked } = watched(WORLD)
  const answer = await run(await standIns(t), { runtime })
  t.strictSame(
    asked.toSorted(),
    [`/steam-store${PAGE}`, `/steam-store${REVIEWS}`, `/steam-api${PLAYERS}`, `/steamspy${SPY}`].toSorted(),
  )
  t.same(codes(answer), [])
  t.same(
    answer.source.map(({ name }) => name),
    ['Sandbox stand-in for the game store', 'Sandbox stand-in for SteamSpy'],
  )
})

t.test('says when to ask again for owners that the rate limit leaves out', async (t) => {
  const url = await standIns(t)
  // Nobody waits for a turn, and the clock stands still: five questions at once, and no sixth.
  const runtime: Runtime = { ...WORLD, now: () => new Date('2026-11-20T20:00:00Z') }
  const handler = app(storeAt(url, runtime), steamSpyAt(url, runtime, 1000))
  const ask = async () => checkedAnswer('gamestore/app', await handler({ appid: FREE }, context()))
  for (let asked = 0; asked < 5; asked++) t.strictSame((await ask()).body['gaps'], [])
  const limited = await ask()
  t.equal(limited.body['owners_estimate'], null, 'of a free game nothing else tells')
  t.match(limited.body['gaps'], [
    {
      fields: ['owners_estimate', 'playtime', 'peak_ccu_yesterday', 'tags'],
      reason: 'source_limited',
      retry_after_seconds: 1,
    },
  ])
  t.match(limited.warnings, [
    { code: 'source_limited', message: /^SteamSpy is asked as often as we may: without it/ },
  ])
  t.ok((limited.freshFor ?? Infinity) <= 30_000, 'and is not kept for long')
})

t.test('publishes an example that equals the stand-ins’ answer', async (t) => {
  t.strictSame(publishedExample('gamestore/app'), (await run(await standIns(t))).body)
})

t.test('counts reviews of all languages and ways of buying', async (t) => {
  const { body } = await run(await standIns(t))
  t.strictSame(body['reviews'], {
    score: 8,
    score_desc: 'Positive',
    total: 22140,
    positive: 19040,
    negative: 3100,
    percent_positive: 86,
    language: 'all',
    purchase_type: 'all',
  })
})

t.test('gives owners as a range with its method, next to the second estimate', async (t) => {
  const { body } = await run(await standIns(t))
  t.strictSame(body['owners_estimate'], {
    low: 500000,
    high: 1000000,
    midpoint: 750000,
    method: 'steamspy',
    confidence: 'medium',
    alternatives: [
      { low: 464940, high: 1239840, midpoint: 774900, method: 'review_multiplier', confidence: 'low' },
    ],
  })
})

t.test('estimates from the reviews without SteamSpy, and says what is missing', async (t) => {
  const url = await standIns(t, { [SPY]: '500' })
  const answer = await run(url)
  t.match(answer.body, {
    owners_estimate: { method: 'review_multiplier', confidence: 'low', alternatives: [] },
    playtime: null,
    peak_ccu_yesterday: null,
    tags: null,
  })
  t.same(codes(answer), ['upstream_unavailable SteamSpy'])
  t.same(answer.source.length, 1)
  const free = await run(url, { appid: FREE })
  t.equal(free.body['owners_estimate'], null, 'reviews of a free game say nothing of owners')
})

t.test('answers an app that SteamSpy hides', async (t) => {
  const answer = await run(await standIns(t), { appid: UNSPIED })
  t.same(codes(answer), [])
  t.match(answer.body, { tags: null, owners_estimate: { method: 'review_multiplier' } })
})

t.test('tells an uncounted number of players from zero', async (t) => {
  const url = await standIns(t)
  const answer = await run(url, { appid: UNCOUNTED })
  t.equal(answer.body['live_players'], null)
  t.same(codes(answer), [])
  const fetch: Runtime['fetch'] = async (address, options) =>
    address.pathname.endsWith(PLAYERS)
      ? Response.json({ response: { result: 42, player_count: 0 } })
      : WORLD.fetch(address, options)
  t.equal(
    (await run(url, { runtime: { ...WORLD, fetch } })).body['live_players'],
    null,
    'with status 200 too',
  )
})

t.test('answers an app without a page in the country from the batch, and says what is missing', async (t) => {
  const answer = await run(await standIns(t), { appid: PAGELESS })
  t.same(codes(answer), ['details_missing the game store'])
  t.match(answer.body, { name: 'Quietus Orchard', type: 'game' })
  t.match(details(answer), { short_description: null, genres: null, price: { amount: 14.99 } })
})

t.test('answers from the batch when the page fails', async (t) => {
  const answer = await run(await standIns(t, { [PAGE]: 'html' }))
  t.same(codes(answer), ['details_missing the game store'])
  t.match(answer.body, { name: 'Brasswing Tactics', live_players: { current: 2460 } })
})

t.test('answers 404 for an unknown app, uncharged', async (t) => {
  const error = await run(await standIns(t), { appid: UNKNOWN }).catch((thrown: unknown) => thrown)
  t.match(error, { code: 'not_found', status: 404, detail: 'App 4294967295 not found' })
})

t.test('calls an app unknown only when the store answers', async (t) => {
  const unsure = await standIns(t, { [PAGE]: '500' })
  await t.rejects(run(unsure, { appid: UNKNOWN }), { code: 'source_error' })
  const half = await standIns(t, { [ITEMS]: '500' })
  await t.rejects(run(half, { appid: UNKNOWN }), { code: 'source_error' })
})

for (const [path, missing] of [
  [REVIEWS, { reviews: null, owners_estimate: { alternatives: [] } }],
  [PLAYERS, { live_players: null }],
  [SPY, { tags: null }],
] as const) {
  for (const fault of ['html', 'empty', 'truncated', 'null429', 'drift', 'hang'] as const) {
    t.test(`sells the rest with a warning when ${path} answers ${fault}`, async (t) => {
      const timeoutMs = fault === 'hang' ? 300 : 5000
      const answer = await run(await standIns(t, { [path]: fault }), { timeoutMs })
      t.match(answer.body, missing)
      t.match(codes(answer), [fault.includes('429') ? /^source_limited/ : /^upstream_unavailable/])
      t.match(answer.body['gaps'], [{ reason: /^source_/, source: String }], 'the answer says why')
      t.notMatch(answer.warnings?.[0]?.message, /http|127|fetch|Unexpected|token/)
    })
  }
}

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['html', 'source_error'],
  ['empty', 'source_error'],
  ['truncated', 'source_error'],
  ['drift', 'source_error'],
  ['500', 'source_error'],
  ['null429', 'source_limited'],
  ['hang', 'source_timeout'],
]
for (const [fault, code] of FAULTS) {
  t.test(`answers ${code} when everything answers ${fault}`, async (t) => {
    const url = await standIns(t, Object.fromEntries([...PARTS, ITEMS].map((path) => [path, fault])))
    const timeoutMs = code === 'source_timeout' ? 60 : 5000
    const error = await run(url, { timeoutMs }).catch((thrown: unknown) => thrown)
    if (!(error instanceof Failure)) return t.fail('It must be a Failure')
    t.equal(error.code, code)
    t.notMatch(error.detail, /http|127|\d{3}|fetch|Unexpected|token/)
  })
}

t.test('marks an estimate that is older than it should be', async (t) => {
  const older: Context = {
    ...context(),
    keep: async (_name, _keeping, _isValue, produce) => ({
      value: await produce(new AbortController().signal, undefined),
      at: new Date(Date.now() - 48 * 3_600_000),
      stale: true,
    }),
  }
  t.same(codes(await run(await standIns(t), { with: older })), ['stale SteamSpy'])
})

t.test('turns HTML of the store into text', async (t) => {
  const answer = await run(await standIns(t))
  t.match(details(answer), {
    short_description: `Brasswing Tactics: an invented game & nobody's to buy. "Ten out of ten."`,
    languages: ['English', 'German', 'Japanese'],
  })
})

const places = fc.constantFrom(
  { path: PAGE, down: [] },
  { path: REVIEWS, down: [] },
  { path: PLAYERS, down: [] },
  { path: SPY, down: [] },
  { path: ITEMS, down: [PAGE] },
)

t.test(`gives a complete body or a Failure for ${MALFORMED_CASES} malformed answers`, async (t) => {
  const url = await standIns(t)
  const outcomes = { answered: 0, failed: 0 }
  const property = fc.asyncProperty(places, changes, async (place, made) => {
    const runtime = spoiling(WORLD, place, made)
    const answer = await run(url, { runtime }).catch((error: unknown) => {
      // A changed id or flag may say that there is no such app.
      if (error instanceof Failure && ['source_error', 'not_found'].includes(error.code)) return undefined
      throw error
    })
    outcomes[answer ? 'answered' : 'failed'] += 1
    if (answer) assertClean(answer.body)
  })
  await fc.assert(property, { numRuns: MALFORMED_CASES })
  t.ok(outcomes.answered > 0 && outcomes.failed > 0, 'both ways were taken')
})
