import t from 'tap'
import {
  Failure,
  type EnvelopedAnswer,
  type ErrorCode,
  type JsonObject,
} from '../../../../../src/engine/handler.ts'
import { appDossier } from '../../../../../src/service/handlers/bundle/app-dossier.ts'
import { enveloped, fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { trimmed } from '../../../../support/service/answer-shape.ts'
import { compareStorePages } from '../../../../support/service/reference-data.ts'
import { openWholeService } from '../../../../support/service/shipped-handlers.ts'

const DOSSIER = '/paid/bundle/app-dossier'
const FIVE = [4100000010, 4100000020, 4100000030, 4100000040, 4100000050]
const UNKNOWN = 4294967295
const METADATA: JsonObject = {
  query: 'Seven',
  match: { confidence: 1 },
  game: { name: 'Seven', igdb_id: 7 },
  similar_games: [{ name: 'Eight' }, { name: 'Nine' }, { name: 'Ten' }],
}

/** A dossier before a database that has no ids of the store. */
const byName = appDossier(async () => undefined)

/** A dossier of apps that are answered by hand: a name, or the code of a failure. */
async function compose(
  apps: Readonly<Record<number, string | { readonly fails: ErrorCode }>>,
  metadata: JsonObject | ErrorCode,
): Promise<{ readonly answer: EnvelopedAnswer; readonly looked: string[] }> {
  const looked: string[] = []
  const at = new Date('2026-11-20T19:58:00Z')
  const part = (name: string, body: JsonObject) => ({
    answer: { source: [{ name }], body },
    at,
    cached: false,
    stale: name === 'store' && body['name'] === 'Old',
  })
  const context = fixedContext({
    ask: async (handler, { appid, name }) => {
      if (handler === 'game/metadata') {
        looked.push(typeof name === 'string' ? name : 'no name')
        if (typeof metadata === 'string') throw new Failure(metadata, 'It does not work')
        return part('database', metadata)
      }
      const app = apps[Number(appid)]
      if (typeof app === 'object') throw new Failure(app.fails, 'It does not work')
      return part('store', { appid: Number(appid), name: app ?? '' })
    },
  })
  const appids = Object.keys(apps).map(Number)
  return { answer: enveloped(await byName.run({ appids }, context)), looked }
}

t.test('asks each source once for each of five titles, all at once', async (t) => {
  const { serve, asked } = await openWholeService(t)
  const { body } = await serve(DOSSIER, { appids: FIVE })
  t.equal((body['apps'] as unknown[]).length, 5)
  const count = (path: string) => asked.get(path) ?? 0
  t.equal(count('/steam-store/api/appdetails'), 5)
  t.equal(count('/steam-api/ISteamUserStats/GetNumberOfCurrentPlayers/v1/'), 5)
  t.equal(count('/steamspy/api.php'), 5)
  for (const appid of FIVE) t.equal(count(`/steam-store/appreviews/${appid}`), 1)
  t.equal(count('/steam-api/IStoreBrowseService/GetItems/v1/'), 0, 'not needed while pages answer')
})

t.test('says so when an answer is made of older data', async (t) => {
  const { send, pass } = await openWholeService(t)
  const deals = (min_review: number) =>
    send('/paid/gamestore/deals', { min_discount: 20, min_review, count: 3 }) as Promise<JsonObject>
  const first = await deals(60)
  t.equal(first['cached'], false)
  pass(5 * 60_000)
  const second = await deals(61)
  t.equal(second['cached'], true, 'another filter, the same pool')
  t.equal(second['fetched_at'], first['fetched_at'])
})

t.test('shares fetched data between the dossier, its sample and the single route', async (t) => {
  const { serve, asked } = await openWholeService(t)
  const [first = 0, ...others] = FIVE
  await serve(DOSSIER, { appids: FIVE })
  const before = Object.fromEntries(asked)
  await serve('/paid/gamestore/app/{appid}', { appid: first })
  await serve('/sample/bundle/app-dossier', { appids: [first] })
  await serve(DOSSIER, { appids: [first, ...others.toReversed()] })
  t.strictSame(Object.fromEntries(asked), before)
})

t.test('reads an app again after five minutes, and SteamSpy after a day', async (t) => {
  const { serve, asked, pass } = await openWholeService(t)
  const read = () => serve('/paid/gamestore/app/{appid}', { appid: FIVE[0] })
  await read()
  pass(4 * 60_000)
  await read()
  t.equal(asked.get('/steam-store/api/appdetails'), 1)
  pass(2 * 60_000)
  await read()
  t.equal(asked.get('/steam-store/api/appdetails'), 2)
  t.equal(asked.get('/steamspy/api.php'), 1)
})

t.test('reads the figures of real store pages as they are meant', (t) => {
  const { equal, differing } = compareStorePages()
  t.strictSame(differing, [])
  t.ok(equal >= 28, String(equal))
  t.end()
})

t.test('gives metadata and neighbours of the first title', async (t) => {
  const { answer, looked } = await compose({ 7: 'Seven', 8: 'Eight' }, METADATA)
  t.strictSame(looked, ['Seven'])
  t.match(answer.body, {
    appids: [7, 8],
    first_title: {
      appid: 7,
      metadata: { match: { confidence: 1 }, game: { name: 'Seven' }, fetched_at: '2026-11-20T19:58:00.000Z' },
      similar_titles: [{ name: 'Eight' }, { name: 'Nine' }, { name: 'Ten' }],
    },
  })
  t.strictSame(answer.source, [{ name: 'store' }, { name: 'database' }])
  t.strictSame(answer.warnings, [])
})

t.test('asks the game database by app id, and by name only when that is unknown', async (t) => {
  const { serve, asked } = await openWholeService(t)
  const [appid = 0] = FIVE
  const { body, warnings } = await serve(DOSSIER, { appids: [appid] })
  t.match(body['first_title'], {
    appid,
    matched_by: 'steam_appid',
    metadata: { game: { external_ids: { steam: String(appid) } } },
  })
  t.strictSame(warnings, [])
  t.equal(asked.get('/igdb/external_games'), 1)
  const { answer, looked } = await compose({ 7: 'Seven' }, METADATA)
  t.match(answer.body['first_title'], { matched_by: 'name' })
  t.strictSame(looked, ['Seven'])
})

t.test('marks metadata of a namesake', async (t) => {
  const known = (steam: string | null) => ({ ...METADATA, game: { name: 'Seven', external_ids: { steam } } })
  t.match((await compose({ 7: 'Seven' }, known('70'))).answer.warnings, [{ code: 'metadata_uncertain' }])
  t.strictSame((await compose({ 7: 'Seven' }, known('7'))).answer.warnings, [])
  t.strictSame((await compose({ 7: 'Seven' }, known(null))).answer.warnings, [])
})

t.test('sells the apps with a warning when the game database is missing', async (t) => {
  for (const [code, warning] of [
    ['not_configured', 'not_configured'],
    ['not_found', 'upstream_unavailable'],
    ['source_error', 'upstream_unavailable'],
  ] as const) {
    const { answer } = await compose({ 7: 'Seven' }, code)
    t.match(answer.body, { first_title: { appid: 7, metadata: null, similar_titles: null } })
    t.match(answer.warnings, [{ code: warning, message: /^Without metadata of the first title/ }])
  }
})

t.test('names an unknown app in its place, and sells the others', async (t) => {
  const { serve } = await openWholeService(t)
  const { body, warnings = [] } = await serve(DOSSIER, { appids: [UNKNOWN, 4100000050] })
  t.match(body['apps'], [
    { appid: UNKNOWN, error: 'not_found' },
    { appid: 4100000050, name: 'Brasswing Tactics' },
  ])
  t.match(body['first_title'], { appid: UNKNOWN, metadata: null, similar_titles: null })
  t.strictSame(warnings, [], 'its entry says it')
})

t.test('puts null, with a warning, instead of an app whose source fails', async (t) => {
  const { answer } = await compose({ 7: 'Seven', 8: { fails: 'source_timeout' } }, METADATA)
  t.match(answer.body['apps'], [{ name: 'Seven' }, { appid: 8, error: 'source_timeout' }])
  t.match(answer.warnings, [{ code: 'upstream_unavailable', message: 'Without app 8: It does not work' }])
})

t.test('refuses when no app is known, and tells unknown apps from failing sources', async (t) => {
  await t.rejects(compose({ 7: { fails: 'not_found' }, 8: { fails: 'not_found' } }, METADATA), {
    code: 'not_found',
    detail: 'None of these apps was found',
  })
  const unsure = { 7: { fails: 'not_found' }, 8: { fails: 'source_limited' } } as const
  await t.rejects(compose(unsure, METADATA), { code: 'source_limited' })
})

t.test('marks an app in its place that is older than it should be', async (t) => {
  const { answer } = await compose({ 7: 'Old', 8: 'New' }, METADATA)
  t.match(answer.body['apps'], [{ warnings: [{ code: 'stale' }] }, { warnings: { length: 0 } }])
})

t.test('shows name, players, owners, reviews and two neighbours in the free sample', async (t) => {
  const { answer } = await compose({ 7: 'Seven' }, METADATA)
  t.strictSame(byName.preview(answer.body)['first_title'], {
    appid: 7,
    metadata: { game: { name: 'Seven' } },
    similar_titles: [{ name: 'Eight' }, { name: 'Nine' }],
  })
  const { send } = await openWholeService(t)
  const sample = await send('/sample/bundle/app-dossier', { appids: [730] })
  t.match(sample, { appids: [730], preview: true, truncated: true, full: { path: DOSSIER } })
  const [app] = (sample as { apps: object[] }).apps
  t.strictSame(Object.keys(app ?? {}), ['appid', 'name', 'live_players', 'reviews', 'owners_estimate'])
  t.match(app, { appid: 730, live_players: { current: 3467 }, reviews: { score_desc: 'Positive' } })
})

t.test('publishes an example that equals the stand-ins’ answer, cut short', async (t) => {
  const { serve } = await openWholeService(t)
  const { body, warnings } = await serve(DOSSIER, { appids: [4100000050, UNKNOWN] })
  t.strictSame(warnings, [], 'no part is missing')
  t.strictSame(publishedExample('bundle/app-dossier'), trimmed(body))
})
