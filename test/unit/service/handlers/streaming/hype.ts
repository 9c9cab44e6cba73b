import t, { type Test } from 'tap'
import {
  Failure,
  type Context,
  type EnvelopedAnswer,
  type JsonObject,
} from '../../../../../src/engine/handler.ts'
import type { Fault } from '../../../../../src/service/stand-ins/fault.ts'
import { startStandIns, type StandIns } from '../../../../../src/service/stand-ins/stand-ins.ts'
import { hype } from '../../../../../src/service/handlers/streaming/hype.ts'
import { scoreHype } from '../../../../../src/service/handlers/streaming/hype-score.ts'
import { fixedContext, keepingContext, publishedExample } from '../../../../support/handler-context.ts'
import { WORLD, twitchAt, type TwitchTerms } from '../../../../support/service/sources.ts'
import {
  MALFORMED_CASES,
  assertClean,
  changes,
  fewCategories,
  spoiling,
} from '../../../../support/service/malformed.ts'
import { fc } from '../../../../support/fast-check.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const LOGIN = '/oauth2/token'
const TOP = '/games/top'
const STREAMS = '/streams'
const HOUR = 3_600_000

type Row = Readonly<Record<string, unknown>>

interface Terms extends TwitchTerms {
  readonly limit?: number
  readonly with?: Context
}

async function standIns(t: Test, faults: Readonly<Record<string, Fault>> = {}): Promise<StandIns> {
  const started = await startStandIns({ faults })
  t.teardown(() => started.stop())
  return started
}
async function run(at: Pick<StandIns, 'url'>, terms: Terms = {}): Promise<EnvelopedAnswer> {
  const handler = hype(twitchAt(at, terms))
  return checkedAnswer(
    'streaming/hype',
    await handler.run({ limit: terms.limit ?? 10 }, terms.with ?? fixedContext()),
  )
}
function rows({ body }: { readonly body: JsonObject }): Row[] {
  return body['items'] as unknown as Row[]
}
function codes({ warnings = [] }: EnvelopedAnswer): string[] {
  return warnings.map(({ code }) => code)
}

t.test('gives the categories of most hype, best first, with the parts of every score', async (t) => {
  const answer = await run(await standIns(t), { limit: 50 })
  t.match(answer.body, { count: 39, categories_sampled: 39 })
  t.same(answer.warnings, [])
  const scores = rows(answer).map(({ hype_score: score }) => Number(score))
  t.strictSame(
    scores,
    scores.toSorted((one, other) => other - one),
  )
  t.strictSame(
    rows(answer).map(({ rank }) => rank),
    scores.map((_, place) => place + 1),
  )
  const total = Number(answer.body['total_viewers_sampled'])
  for (const row of rows(answer)) {
    const top = row['top_channel'] as { viewers: number }
    const sharePercent = (100 * Number(row['viewers'])) / total
    const momentumPercent = row['momentum_percent'] as number | null
    const { score, components } = scoreHype({
      sharePercent,
      momentumPercent,
      topShare: top.viewers / Number(row['viewers']),
    })
    t.strictSame([row['hype_score'], row['components']], [score, components])
    t.equal(row['viewer_share_percent'], Number(sharePercent.toFixed(2)))
  }
})

t.test('counts each channel once though pages overlap, and says when more may exist', async (t) => {
  const items = rows(await run(await standIns(t), { limit: 50 }))
  const large = items.find(({ category_id: id }) => id === '990000100')
  t.match(large, { live_channels_sampled: 180, viewers_is_lower_bound: true, viewers: 581696, igdb_id: null })
  const small = items.find(({ category_id: id }) => id === '990000101')
  t.match(small, {
    live_channels_sampled: 90,
    viewers_is_lower_bound: false,
    igdb_id: '9100000',
    box_art_url: 'https://static-cdn.jtvnw.net/ttv-boxart/990000101-285x380.jpg',
  })
})

t.test('serves every limit, filter and sample from one sample of at most 60 calls', async (t) => {
  const at = await standIns(t)
  const clock = { now: Date.parse('2026-11-20T20:00:00Z') }
  const handler = hype(twitchAt(at))
  const context = keepingContext(clock)
  for (const limit of [10, 3, 50, 1]) {
    const answer = checkedAnswer('streaming/hype', await handler.run({ limit }, context))
    t.equal(rows(answer).length, Math.min(limit, 39))
    t.strictSame(answer.fetchedAt, new Date(clock.now))
  }
  const sum = (): number => [...at.asked.values()].reduce((all, each) => all + each, 0)
  const first = sum()
  t.ok(first <= 60, String(first))
  t.equal(at.asked.get('/twitch-id/oauth2/token'), 1)
  clock.now += 120_000
  await handler.run({ limit: 10 }, context)
  t.equal(sum(), 2 * first - 1, 'the next sample, with the same token')
})

t.test('tells rising from falling as soon as earlier samples exist', async (t) => {
  const at = await standIns(t)
  const clock = { now: Date.parse('2026-11-20T20:00:00Z') }
  const context = keepingContext(clock)
  let factor = 1
  const fetch: typeof WORLD.fetch = async (url, options) => {
    const reply = await WORLD.fetch(url, options)
    if (url.searchParams.get('game_id') !== '990000138') return reply
    const { data } = (await new Response(reply.body as ReadableStream).json()) as {
      data: { viewer_count: number; id: string }[]
    }
    return Response.json({
      data: data.map((stream) => ({ ...stream, viewer_count: Math.round(stream.viewer_count * factor) })),
    })
  }
  const runtime = { ...WORLD, fetch, now: () => new Date(clock.now) }
  const handler = hype(twitchAt(at, { runtime }))
  const last = async (): Promise<Row | undefined> => {
    const answer = checkedAnswer('streaming/hype', await handler.run({ limit: 50 }, context))
    return rows(answer).find(({ category_id: id }) => id === '990000138')
  }
  t.match(await last(), { momentum_percent: null, trend: 'unknown', components: { momentum: 0.5 } })
  clock.now += HOUR
  t.match(await last(), { momentum_percent: 0, trend: 'steady' })
  factor = 1.5
  clock.now += HOUR
  t.match(await last(), { momentum_percent: 50, trend: 'rising', components: { momentum: 0.7502 } })
  factor = 0.5
  clock.now += HOUR
  const falling = await last()
  // The average is 1 + 0.25 × 0.5 of the usual by now.
  t.equal(falling?.['trend'], 'falling')
  t.ok(Math.abs(Number(falling?.['momentum_percent']) - 100 * (0.5 / 1.125 - 1)) < 0.2)
  clock.now += 26 * HOUR
  t.match(await last(), { trend: 'unknown' }, 'a history of yesterday says nothing of now')
})

t.test('knows trends at the first sale, out of a sample every half hour', async (t) => {
  const at = await standIns(t)
  const clock = { now: Date.parse('2026-11-20T20:00:00Z') }
  const context = keepingContext(clock)
  const runtime = { ...WORLD, now: () => new Date(clock.now) }
  const handler = hype(twitchAt(at, { runtime }))
  const calls = (): number => [...at.asked.values()].reduce((all, each) => all + each, 0)
  const look = async (): Promise<void> => handler.background?.(context)
  await look()
  const first = calls()
  t.ok(first > 0)
  for (let minute = 1; minute < 30; minute += 1) {
    clock.now += 60_000
    await look()
  }
  t.equal(calls(), first, 'one sample serves half an hour')
  clock.now += 60_000
  await look()
  t.ok(calls() > first, 'then comes the next')
  clock.now += 3 * 60_000
  const { body } = await run(at, { with: context, runtime })
  t.same(new Set(rows({ body }).map(({ trend }) => trend)), new Set(['steady']))
})

t.test('answers with the rest, and says so, when one call fails', async (t) => {
  const listless = await run(await standIns(t, { [TOP]: '500' }))
  t.same(codes(listless), ['ranking_fallback'])
  t.match(rows(listless)[0], { name: 'Chairs and Chatter', box_art_url: null, igdb_id: null })

  let asked = 0
  const fetch: typeof WORLD.fetch = (url, options) => {
    if (url.pathname.endsWith(STREAMS) && !url.searchParams.has('game_id')) asked += 1
    return url.searchParams.get('game_id') === '990000100'
      ? Promise.resolve(new Response('', { status: 400 }))
      : WORLD.fetch(url, options)
  }
  const partial = await run(await standIns(t), { runtime: { ...WORLD, fetch } })
  t.same(codes(partial), ['sample_partial'])
  t.match(rows(partial)[0], { name: 'Chairs and Chatter', viewers_is_lower_bound: true })
  t.ok(asked > 1, 'from the largest channels')
})

t.test('renews an expired token once, for all calls under way', async (t) => {
  const at = await standIns(t, { [TOP]: '401-once' })
  t.equal(rows(await run(at)).length, 10)
  t.equal(at.asked.get('/twitch-id/oauth2/token'), 2)
  const locked = await standIns(t, { [TOP]: '401', [STREAMS]: '401' })
  await t.rejects(run(locked), { code: 'source_error' })
})

t.test(
  'reports missing or wrong credentials to the operator, keeps them private, and asks rarely with them',
  async (t) => {
    const at = await standIns(t)
    await t.rejects(run(at, { credentials: undefined }), { code: 'not_configured' })
    t.same([...at.asked], [])
    for (const credentials of [
      { clientId: 'nobody', clientSecret: 'tricky-word' },
      { clientId: 'stand-in-client', clientSecret: 'tricky-word' },
    ]) {
      const fault = await run(at, { credentials }).catch((thrown: unknown) => thrown)
      if (!(fault instanceof Failure)) return t.fail('It must be a Failure')
      t.equal(fault.code, 'not_configured')
      t.notMatch(fault.stack, /tricky-word/)
    }
    t.ok((at.asked.get('/twitch-id/oauth2/token') ?? 0) <= 4)
  },
)

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['html', 'source_error'],
  ['empty', 'source_error'],
  ['truncated', 'source_error'],
  ['drift', 'source_error'],
  ['redirect', 'source_error'],
  ['500', 'source_error'],
  ['null429', 'source_limited'],
  ['429-reset', 'source_limited'],
  ['hang', 'source_timeout'],
]
for (const [fault, code] of FAULTS) {
  for (const paths of [[TOP, STREAMS], [LOGIN]]) {
    t.test(`answers ${code} when ${paths.join(' and ')} answer ${fault}`, async (t) => {
      const at = await standIns(t, Object.fromEntries(paths.map((path) => [path, fault])))
      const timeoutMs = code === 'source_timeout' ? 60 : 5000
      const error = await run(at, { timeoutMs }).catch((thrown: unknown) => thrown)
      if (!(error instanceof Failure)) return t.fail('It must be a Failure')
      t.equal(error.code, code)
      t.notMatch(error.detail, /http|127|\d{3}|fetch|Unexpected|token/)
      if (fault === '429-reset') t.ok((error.retryAfter ?? 0) > 30, 'as long as Twitch says')
    })
  }
}

t.test('states the age of an older sample', async (t) => {
  const at = new Date(Date.parse('2026-11-20T20:00:00Z') - 10 * 60_000)
  const older = fixedContext({
    keep: async (_name, _keeping, _isValue, produce) => ({
      value: await produce(fixedContext().signal),
      at,
      stale: true,
    }),
  })
  const answer = await run(await standIns(t), { with: older })
  t.equal(answer.fetchedAt, at)
  t.match(answer.warnings, [{ code: 'stale', message: /10 minutes ago/ }])
})

t.test('shows the first three by name and viewers in the free sample', async (t) => {
  const at = await standIns(t)
  const answer = await run(at)
  const sample = hype(twitchAt(at)).preview(answer.body)
  const first = rows(answer).slice(0, 3)
  t.strictSame(sample, {
    count: 3,
    items: first.map(({ rank, name, viewers }) => ({ rank, name, viewers })),
  })
})

t.test('publishes an example that equals the stand-ins’ answer, cut to two', async (t) => {
  const answer = await run(await standIns(t))
  const items = rows(answer).slice(0, 2)
  t.strictSame(publishedExample('streaming/hype'), { ...answer.body, count: 2, items })
})

const places = fc.constantFrom(
  { path: LOGIN, down: [] },
  { path: TOP, down: [] },
  { path: STREAMS, down: [] },
  { path: STREAMS, down: [TOP] },
)

t.test(`gives a complete body or a Failure for ${MALFORMED_CASES} malformed answers`, async (t) => {
  const at = await startStandIns({ spoil: fewCategories })
  t.teardown(() => at.stop())
  const outcomes = { answered: 0, failed: 0 }
  const property = fc.asyncProperty(places, changes, async (place, made) => {
    const answer = await run(at, { runtime: spoiling(WORLD, place, made) }).catch((error: unknown) => {
      if (error instanceof Failure && error.code.startsWith('source_')) return undefined
      throw error
    })
    outcomes[answer ? 'answered' : 'failed'] += 1
    if (!answer) return
    assertClean(answer.body)
    for (const { hype_score: score } of rows(answer))
      if (!(Number(score) >= 0 && Number(score) <= 100)) throw new Error(`score ${String(score)}`)
  })
  await fc.assert(property, { numRuns: MALFORMED_CASES })
  t.ok(outcomes.answered > 0 && outcomes.failed > 0, 'both ways were taken')
})
