import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startStandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import type { Fault } from '../../../src/service/stand-ins/fault.ts'
import { publishedExample } from '../../support/handler-context.ts'
import { stockFetch } from '../../support/payment.ts'
import { shapeDifferences } from '../../support/service/answer-shape.ts'
import { openShop } from '../../support/shop.ts'

const CATALOG = fileURLToPath(new URL('../../../catalog.yaml', import.meta.url))
const GAME = 4100000050
const FAULTS: readonly (readonly [Fault, number])[] = [
  ['html', 502],
  ['empty', 502],
  ['truncated', 502],
  ['drift', 502],
  ['500', 502],
  ['hang', 504],
]
const faults: Record<string, Fault> = {}
const standIns = await startStandIns({ faults })
t.teardown(standIns.stop)

const shop = await openShop(async () => ({
  CATALOG,
  STEAM_STORE_URL: `${standIns.url}/steam-store`,
  STEAM_API_URL: `${standIns.url}/steam-api`,
  STEAMSPY_URL: `${standIns.url}/steamspy`,
}))
t.teardown(() => shop.close())

const ROUTES = [
  { path: '/paid/gamestore/top-sellers?country=FR', example: 'gamestore/top-sellers', atomic: 5_000n },
  { path: '/paid/gamestore/deals?min_discount=30', example: 'gamestore/deals', atomic: 5_000n },
  { path: `/paid/gamestore/app/${GAME}`, example: 'gamestore/app', atomic: 5_000n },
]

const BUNDLES = [
  { path: '/paid/bundle/market-snapshot', example: 'bundle/market-snapshot', atomic: 250_000n },
  { path: `/paid/bundle/app-dossier?appids=${GAME}`, example: 'bundle/app-dossier', atomic: 500_000n },
]

/** Every address of the sources fails in this way. */
function breakSources(fault: Fault | undefined): void {
  const paths = [
    '/search/results/',
    '/api/featuredcategories/',
    '/api/appdetails',
    `/appreviews/${GAME}`,
    '/IStoreBrowseService/GetItems/v1/',
    '/IStoreQueryService/Query/v1/',
    '/IStoreTopSellersService/GetWeeklyTopSellers/v1/',
    '/ISteamUserStats/GetNumberOfCurrentPlayers/v1/',
    '/api.php',
  ]
  for (const path of paths) {
    if (fault === undefined) delete faults[path]
    else faults[path] = fault
  }
}

const pay = stockFetch(await shop.wallet())
const answers = async (path: string) => {
  const response = await pay(shop.url + path)
  const body = (await response.json()) as Record<string, unknown>
  return { status: response.status, retryAfter: response.headers.get('retry-after'), body }
}
const taken = async () => (await shop.onchain.received(shop.payTo)).length

for (const [fault, status] of FAULTS) {
  t.test(`charges nothing when the store answers ${fault}`, async (t) => {
    breakSources(fault)
    const before = await taken()
    const bought = await Promise.all(ROUTES.map(({ path }) => answers(path)))
    for (const { status: actual, body } of bought) {
      t.equal(actual, status, JSON.stringify(body))
      t.match(body, { charged: 'no', retryable: true })
    }
    t.equal(await taken(), before, 'no money moved')
  })
}

t.test('charges nothing for an unknown app', async (t) => {
  breakSources(undefined)
  const before = await taken()
  const { status, body } = await answers('/paid/gamestore/app/4294967295')
  t.equal(status, 404)
  t.match(body, { code: 'not_found', charged: 'no', detail: 'App 4294967295 not found' })
  t.equal(await taken(), before)
})

t.test('charges nothing for a dossier of unknown apps, a route that settles first', async (t) => {
  const before = await taken()
  const { status, body } = await answers('/paid/bundle/app-dossier?appids=4294967294,4294967295')
  t.equal(status, 404)
  t.match(body, { code: 'not_found', charged: 'no' })
  t.equal(await taken(), before)
})

t.test('sells every route at its price once the store answers again', async (t) => {
  for (const { path, example, atomic } of [...ROUTES, ...BUNDLES]) {
    const before = await taken()
    const { status, body } = await answers(path)
    t.equal(status, 200, JSON.stringify(body))
    t.strictSame(shapeDifferences(publishedExample(example), body), [], example)
    t.strictSame((await shop.onchain.received(shop.payTo)).slice(before), [atomic])
  }
})

t.test('sells a snapshot without hype, with the reason, when Twitch is unconfigured', async (t) => {
  const { status, body } = await answers('/sample/bundle/market-snapshot?country=FR')
  t.equal(status, 200)
  t.match(body, { hype: null, warnings: [{ code: 'not_configured', message: /^Without streaming hype/ }] })
})

t.test('passes on the wait when a store limits us, uncharged', async (t) => {
  breakSources('null429')
  const before = await taken()
  for (const path of ['/paid/gamestore/top-sellers?country=IT', '/paid/gamestore/app/4100000060']) {
    const { status, retryAfter, body } = await answers(path)
    t.equal(status, 503)
    t.match(body, { code: 'source_limited', charged: 'no' })
    t.ok(Number(retryAfter) > 0 && Number(retryAfter) <= 30, String(retryAfter))
  }
  t.equal(await taken(), before)
})

t.test('sells what was read before meanwhile, from the cache', async (t) => {
  const [{ path } = { path: '' }] = ROUTES.slice(1)
  const calls = Array.from(standIns.asked.values()).reduce((sum, count) => sum + count, 0)
  const { status, body } = await answers(path.replace('30', '31'))
  t.equal(status, 200)
  t.ok(Number(body['count']) > 0)
  t.equal(
    Array.from(standIns.asked.values()).reduce((sum, count) => sum + count, 0),
    calls,
  )
})

t.test('tells every source who asks, in which version, with a contact', (t) => {
  for (const agent of standIns.userAgents)
    t.match(agent, /^Ratecard\/\d+\.\d+\.\d+ \(\+https:\/\/api\.example\.com\)$/)
  t.equal(standIns.userAgents.size, 1)
  t.end()
})

t.test('refuses an unknown country on the route and its sample, uncharged', async (t) => {
  const before = await taken()
  for (const country of ['ZZ', 'XX', 'EU'])
    for (const kind of ['paid', 'sample']) {
      const { status, body } = await answers(`/${kind}/gamestore/top-sellers?country=${country}`)
      t.equal(status, 422, `${kind} ${country}`)
      t.match(body, { detail: [{ loc: ['query', 'country'] }] })
    }
  const snapshot = await answers('/sample/bundle/market-snapshot?country=ZZ')
  t.equal(snapshot.status, 422)
  t.match(snapshot.body, { detail: [{ loc: ['query', 'countries'] }] })
  t.equal(await taken(), before)
})
