import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startStandIns } from '../../src/service/stand-ins/stand-ins.ts'
import { STAND_IN_CREDENTIALS } from '../../src/service/sources/twitch/access.ts'
import { fc } from '../support/fast-check.ts'
import { stockFetch } from '../support/payment.ts'
import { redisAbsence, startRedis } from '../support/redis.ts'
import { openShop } from '../support/shop.ts'
import { assertClean, changes, fewCategories, spoil, type Change } from '../support/malformed.ts'

/** Of each source: a few in the suite, 500 by `npm run quality`. */
const CASES = Number(process.env['MALFORMED_CASES'] ?? 6)
/** Every so many cases the answer is bought; the others are free samples, or routes without one. */
const BOUGHT = 3
const SEED = 20_261_122
const GAME = 4_100_000_050

type Body = Readonly<Record<string, unknown>>

interface Target {
  readonly source: string
  /** Whose answers are changed. */
  readonly addresses: RegExp
  readonly sample: string | undefined
  readonly paid: string
  /** What a buyer of the route must find in its answer. */
  readonly content: (body: Body) => boolean
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const rows = (value: unknown): Body[] => (Array.isArray(value) ? (value as Body[]) : [])
const named = (value: unknown): boolean => {
  const list = rows(value)
  return list.length > 0 && list.every(({ name }) => isText(name))
}

const TARGETS: readonly Target[] = [
  {
    source: 'search of the store',
    addresses: /^\/steam-store\/search/,
    sample: '/sample/gamestore/top-sellers?country=DE',
    paid: '/paid/gamestore/top-sellers?country=DE',
    content: ({ items }) => named(items),
  },
  {
    source: 'items of the store',
    addresses: /^\/steam-api\/IStoreBrowseService/,
    sample: '/sample/gamestore/top-sellers?country=FR',
    paid: '/paid/gamestore/top-sellers?country=FR',
    content: ({ items }) => named(items),
  },
  {
    source: 'query of the store',
    addresses: /^\/steam-api\/IStoreQueryService/,
    sample: '/sample/gamestore/deals?min_discount=0&min_review=0',
    paid: '/paid/gamestore/deals?min_discount=0&min_review=0',
    content: ({ items, pool_size: size }) => named(items) && Number(size) > 0,
  },
  {
    source: 'pages of the store',
    addresses: /^\/steam-store\/api\/appdetails/,
    sample: undefined,
    paid: `/paid/gamestore/app/${GAME}`,
    content: ({ name, type }) => isText(name) && isText(type),
  },
  {
    source: 'reviews and players',
    addresses: /^\/steam-(?:store\/appreviews|api\/ISteamUserStats)/,
    sample: undefined,
    paid: `/paid/gamestore/app/${GAME}`,
    content: ({ name }) => isText(name),
  },
  {
    source: 'SteamSpy',
    addresses: /^\/steamspy/,
    sample: '/sample/bundle/app-dossier?appid=730',
    paid: `/paid/gamestore/app/${GAME}`,
    content: ({ name, apps }) => isText(name) || named(apps),
  },
  {
    source: 'Twitch',
    addresses: /^\/twitch-api/,
    sample: '/sample/streaming/hype?limit=3',
    paid: '/paid/streaming/hype?limit=3',
    content: ({ items }) => named(items) && rows(items).every(({ viewers }) => Number.isInteger(viewers)),
  },
  {
    source: 'IGDB',
    addresses: /^\/igdb/,
    sample: '/sample/game/metadata?name=Glasswort%20Colony',
    paid: '/paid/game/metadata?name=Glasswort%20Colony',
    content: ({ game }) => isText((game as Body | null)?.['name']),
  },
  {
    source: 'Crossref',
    addresses: /^\/crossref/,
    sample: '/sample/util/citation?doi=10.1038/nature14539',
    paid: '/paid/util/citation?doi=10.1038/nature14539',
    content: ({ citations }) => Object.values(citations as Body).every(isText),
  },
  {
    source: 'DataCite',
    addresses: /^\/datacite/,
    sample: '/sample/util/citation?doi=10.5281/zenodo.4711',
    paid: '/paid/util/citation?doi=10.5281/zenodo.4711',
    content: ({ citations }) => Object.values(citations as Body).every(isText),
  },
]

t.setTimeout(CASES > 50 ? 7_200_000 : 300_000)

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else {
  let spoilt: { readonly addresses: RegExp; readonly made: readonly Change[] } | undefined
  let reached = 0
  const standIns = await startStandIns({
    spoil: (address, body) => {
      if (spoilt === undefined || !spoilt.addresses.test(address)) return fewCategories(address, body)
      reached += 1
      return spoilt.made.reduce(spoil, fewCategories(address, body))
    },
  })
  t.teardown(standIns.stop)
  const cache = await startRedis()
  t.teardown(() => cache.stop())
  const shop = await openShop(async () => ({
    CATALOG: fileURLToPath(new URL('../../catalog.yaml', import.meta.url)),
    // Emptied between cases: what was read well before must not stand in.
    CACHE_REDIS_URL: cache.url,
    TRUST_PROXY: '1',
    STEAM_STORE_URL: `${standIns.url}/steam-store`,
    STEAM_API_URL: `${standIns.url}/steam-api`,
    STEAMSPY_URL: `${standIns.url}/steamspy`,
    TWITCH_API_URL: `${standIns.url}/twitch-api`,
    TWITCH_ID_URL: `${standIns.url}/twitch-id`,
    IGDB_URL: `${standIns.url}/igdb`,
    TWITCH_CLIENT_ID: STAND_IN_CREDENTIALS.clientId,
    TWITCH_CLIENT_SECRET: STAND_IN_CREDENTIALS.clientSecret,
    CROSSREF_URL: `${standIns.url}/crossref`,
    DATACITE_URL: `${standIns.url}/datacite`,
    DOI_URL: `${standIns.url}/doi`,
    EGRESS_ALLOW: new URL(standIns.url).host,
  }))
  t.teardown(() => shop.close())

  t.test(`sells only answers with content when ${CASES} answers of each source are malformed`, async (t) => {
    // A wallet for each: one that asks again at once is given the answer it has paid for.
    const buy = async (url: string) => stockFetch(await shop.wallet())(url)
    const drawn = fc.sample(changes, { numRuns: CASES, seed: SEED })
    let bought = 0
    let client = 0
    const ask = async (target: Target, isBought: boolean): Promise<Response> => {
      for (;;) {
        await cache.command('FLUSHALL')
        client += 1
        const free = target.sample === undefined ? undefined : shop.url + target.sample
        const headers = { 'x-forwarded-for': `203.0.${(client >> 8) & 255}.${client & 255}` }
        const response =
          isBought || free === undefined ? await buy(shop.url + target.paid) : await fetch(free, { headers })
        const wait = Number(response.headers.get('retry-after') ?? 0)
        // Our own budget of the source: only the long run asks so often.
        if (response.status !== 503 || CASES < 50 || wait === 0) return response
        await response.arrayBuffer()
        await pause(wait * 1000)
      }
    }
    for (const target of TARGETS) {
      const seen: Record<string, number> = { sold: 0 }
      const before = reached
      for (const [place, made] of drawn.entries()) {
        spoilt = { addresses: target.addresses, made }
        const isBought = target.sample === undefined || place % BOUGHT === 0
        const response = await ask(target, isBought)
        const body = (await response.json()) as Body
        const told = `${target.source} ${place}: ${response.status} ${JSON.stringify(body).slice(0, 300)}`
        if (response.status === 200) {
          seen['sold'] = (seen['sold'] ?? 0) + 1
          if (isBought) bought += 1
          assertClean(body)
          if (!target.content(body)) t.fail(`without content: ${told}`)
        } else {
          const code = String(body['code'])
          seen[code] = (seen[code] ?? 0) + 1
          if (![404, 502, 503, 504].includes(response.status)) t.fail(told)
          if (isBought && body['charged'] !== 'no') t.fail(`charged: ${told}`)
        }
      }
      t.ok(reached > before, `${target.source}: ${JSON.stringify(seen)}`)
    }
    spoilt = undefined
    t.equal((await shop.witness.received(shop.payTo)).length, bought, 'charged is answered')
  })
}
