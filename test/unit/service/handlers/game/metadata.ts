import t, { type Test } from 'tap'
import { Failure, type Context, type EnvelopedAnswer } from '../../../../../src/engine/handler.ts'
import type { Fault } from '../../../../../src/service/stand-ins/fault.ts'
import { startStandIns, type StandIns } from '../../../../../src/service/stand-ins/stand-ins.ts'
import { metadata } from '../../../../../src/service/handlers/game/metadata.ts'
import { MetricsBySource } from '../../../../../src/service/sources/source-metrics.ts'
import { fixedContext, keepingContext, publishedExample } from '../../../../support/handler-context.ts'
import { WORLD, igdbAt, type TwitchTerms } from '../../../../support/service/sources.ts'
import { MALFORMED_CASES, assertClean, changes, spoiling } from '../../../../support/service/malformed.ts'
import { fc } from '../../../../support/fast-check.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const GAMES = '/games'
const TIMES = '/game_time_to_beats'
const LOGIN = '/oauth2/token'
const NAME = 'Nine Lanterns Deep'

interface Terms extends TwitchTerms {
  readonly name?: string
  readonly with?: Context
}

async function standIns(t: Test, faults: Readonly<Record<string, Fault>> = {}): Promise<StandIns> {
  const started = await startStandIns({ faults })
  t.teardown(() => started.stop())
  return started
}
async function run(at: Pick<StandIns, 'url'>, terms: Terms = {}): Promise<EnvelopedAnswer> {
  const handler = metadata(igdbAt(at, terms))
  return checkedAnswer(
    'game/metadata',
    await handler.run({ name: terms.name ?? NAME }, terms.with ?? fixedContext()),
  )
}

t.test('publishes an example that equals the stand-ins’ answer', async (t) => {
  const answer = await run(await standIns(t))
  t.strictSame(publishedExample('game/metadata'), answer.body)
  t.same(answer.warnings, [])
})

t.test('passes a name with quotes and escapes to the source as a name', async (t) => {
  const at = await standIns(t)
  for (const name of [
    'Nine "Lanterns" Deep',
    'Lanterns\\',
    '\\" ; fields *;',
    'Lanterns\n\u0000"',
    "Lantern's",
  ]) {
    const answer = await run(at, { name }).catch((fault: unknown) => fault)
    if (answer instanceof Failure) t.equal(answer.code, 'not_found', name)
    else t.match(answer, { body: { query: name } })
  }
})

t.test('answers 404 for an unknown name, and remembers it', async (t) => {
  const at = await standIns(t)
  const clock = { now: Date.parse('2026-11-20T20:00:00Z') }
  const context = keepingContext(clock)
  const handler = metadata(igdbAt(at))
  for (const name of ['Zzyzx', ' zzyzx ', 'ZZYZX']) {
    await t.rejects(handler.run({ name }, context), {
      code: 'not_found',
      detail: `No game found for name '${name}'`,
    })
  }
  t.equal(at.asked.get('/igdb/games'), 1)
  clock.now += 3_600_000
  await t.rejects(handler.run({ name: 'Zzyzx' }, context), { code: 'not_found' })
  t.equal(at.asked.get('/igdb/games'), 2, 'for an hour')
  await t.rejects(handler.run({ name: ' \t' }, context), { message: 'name: name must not be blank' })
})

t.test('leaves the times null for a game without any', async (t) => {
  const { body, warnings } = await run(await standIns(t), { name: 'Saltglass Expedition' })
  t.match(body, { game: { name: 'Saltglass Expedition', time_to_beat_hours: null } })
  t.same(warnings, [])
})

t.test('answers without the times, says so, and caches that briefly', async (t) => {
  const answer = await run(await standIns(t, { [TIMES]: '500' }))
  t.match(answer, {
    warnings: [{ code: 'upstream_unavailable', source: 'IGDB' }],
    freshFor: 300_000,
    body: { game: { name: NAME, time_to_beat_hours: null } },
  })
})

t.test('tells an exact match from a weak one', async (t) => {
  const { body, warnings } = await run(await standIns(t), { name: 'Portal 2' })
  t.match(body, { match: { confidence: 0 } })
  t.match(warnings, [{ code: 'match_unsure', message: /Glasswort Colony/ }])
})

t.test('shares a log-in between hype and metadata, and renews it when it has expired', async (t) => {
  const at = await standIns(t, { [GAMES]: '401-once' })
  t.match((await run(at)).body, { game: { name: NAME } })
  t.equal(at.asked.get('/twitch-id/oauth2/token'), 2)
  await t.rejects(run(await standIns(t), { credentials: undefined }), { code: 'not_configured' })
})

const FAULTS: readonly (readonly [Fault, string])[] = [
  ['html', 'source_error'],
  ['empty', 'source_error'],
  ['truncated', 'source_error'],
  ['reset', 'source_error'],
  ['drift', 'source_error'],
  ['huge', 'source_error'],
  ['400', 'source_error'],
  ['404', 'source_error'],
  ['500', 'source_error'],
  ['null429', 'source_limited'],
  ['hang', 'source_timeout'],
  ['drip', 'source_timeout'],
]
for (const [fault, code] of FAULTS) {
  t.test(`answers ${code}, uncached, when the database answers ${fault}`, async (t) => {
    const at = await standIns(t, { [GAMES]: fault })
    const timeoutMs = code === 'source_timeout' ? 60 : 5000
    const context = keepingContext({ now: 0 })
    const error = await run(at, { timeoutMs, with: context }).catch((thrown: unknown) => thrown)
    if (!(error instanceof Failure)) return t.fail('It must be a Failure')
    t.equal(error.code, code)
    t.notMatch(error.detail, /http|127|\d{3}|fetch|Unexpected|token/)
    t.match((await run(await standIns(t), { with: context })).body, { game: { name: NAME } })
  })
}

t.test('shows the operator where the database has changed', async (t) => {
  const records = new MetricsBySource(WORLD.now)
  const runtime = spoiling(WORLD, { path: GAMES, down: [] }, [])
  const fetch: typeof WORLD.fetch = async (url, options) => {
    const reply = await runtime.fetch(url, options)
    if (!url.pathname.endsWith(GAMES)) return reply
    return Response.json([{ id: 'nine', name: NAME }])
  }
  await t.rejects(run(await standIns(t), { runtime: { ...WORLD, fetch }, records }), { code: 'source_error' })
  t.match(records.figures().get('igdb'), {
    asked: 1,
    failed: 0,
    drifted: 1,
    lastDrift: { where: '#/id: type' },
  })
})

t.test('shows what identifies a game, and the beginning of its summary, in the free sample', async (t) => {
  const at = await standIns(t)
  const sample = metadata(igdbAt(at)).preview((await run(at)).body)
  t.match(sample, {
    game: {
      name: NAME,
      first_release_date: /^2026-/,
      genres: ['Simulator'],
      platforms: ['PC (Microsoft Windows)', 'Mac', 'Linux'],
      ratings: { total: { score: 81, count: 90 } },
      summary: /^Nine Lanterns Deep does not exist\. .*…$/,
    },
  })
  t.strictSame(Object.keys(sample), ['game'])
  const game = sample['game'] as { summary: string }
  t.equal(Array.from(game.summary).length, 160)
})

const places = fc.constantFrom(
  { path: LOGIN, down: [] },
  { path: GAMES, down: [] },
  { path: TIMES, down: [] },
)

t.test(`gives a complete body or a Failure for ${MALFORMED_CASES} malformed answers`, async (t) => {
  const at = await standIns(t)
  const outcomes = { answered: 0, failed: 0 }
  const property = fc.asyncProperty(places, changes, async (place, made) => {
    const answer = await run(at, { runtime: spoiling(WORLD, place, made) }).catch((error: unknown) => {
      if (error instanceof Failure && /^source_|^not_found$/.test(error.code)) return undefined
      throw error
    })
    outcomes[answer ? 'answered' : 'failed'] += 1
    if (answer) assertClean(answer.body)
  })
  await fc.assert(property, { numRuns: MALFORMED_CASES })
  t.ok(outcomes.answered > 0 && outcomes.failed > 0, 'both ways were taken')
})
