import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/engine/json.ts'
import { differences } from '../support/answer-schema.ts'
import { fc } from '../support/fast-check.ts'
import { openLane, type Lane } from '../support/lane.ts'
import { callTool } from '../support/mcp.ts'
import { sign, stockFetch, type Challenge } from '../support/payment.ts'
import { redisAbsence } from '../support/redis.ts'
import { openShop } from '../support/shop.ts'
import { assertClean, changes } from '../support/malformed.ts'

/** Of each source: a few in the suite, 500 by `npm run quality`. */
const CASES = Number(process.env['MALFORMED_CASES'] ?? 6)
/** Many cases run side by side on processes of their own: of one, a source is asked only so often. */
const IS_LONG = CASES > 6
const OF_ONE_PROCESS = 170
/** At the same time: more of them take each other’s time. */
const PROCESSES = 6
/** Every so many cases the answer is bought; the others are free samples, or routes without one. */
const BOUGHT = 3
const SEED = 20_261_122
const GAME = 4_100_000_050
const TEXT = 'Portal 2 came out on 18 April 2011 and costs 9.75 euros. It is still sold. Few games are.'
const SCHEMA = {
  type: 'object',
  required: ['name', 'price'],
  properties: { name: { type: 'string', minLength: 1 }, price: { type: 'number' } },
}
/** What nobody is charged for. */
const REFUSALS = new Set([
  'not_found',
  'source_error',
  'source_timeout',
  'source_limited',
  'dataset_unavailable',
  'schema_mismatch',
])

type Body = Readonly<Record<string, unknown>>

interface Target {
  readonly source: string
  /** Whose answers are changed. */
  readonly addresses: RegExp
  readonly sample: string | undefined
  /** `{n}` is the number of the case. */
  readonly paid: string | { readonly tool: string; readonly args: JsonObject }
  /** What a buyer of the route must find in its answer. */
  readonly content: (body: Body) => boolean
  /** The source is read at the start only. */
  readonly restarts?: boolean
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
  {
    source: 'RDAP',
    addresses: /^\/rdap/,
    sample: undefined,
    // Name servers fail, and there is no site: what the registry says is all there is to sell.
    paid: '/paid/util/site-intel?target=case{n}.com',
    content: ({ registration }) => {
      const { registered, registrar, created_at: created } = (registration ?? {}) as Body
      return registered === false || isText(registrar) || isText(created)
    },
  },
  {
    source: 'search engine',
    addresses: /^\/searxng/,
    sample: undefined,
    paid: { tool: 'web_research', args: { query: 'Which games sold best in Japan last week?' } },
    content: ({ brief, sources, claims }) =>
      isText(brief) && rows(claims).length > 0 && rows(sources).some(({ url }) => isText(url)),
  },
  {
    source: 'completions of the model',
    addresses: /^\/model\/chat/,
    sample: undefined,
    paid: { tool: 'summarize', args: { text: TEXT } },
    content: ({ summary }) => isText(summary),
  },
  {
    source: 'text of the model',
    addresses: /^\/model\/written/,
    sample: undefined,
    paid: { tool: 'extract_structured', args: { text: TEXT, schema: SCHEMA } },
    content: ({ data }) => {
      const { price, name } = data as Body
      return typeof price === 'number' && isText(name)
    },
  },
  {
    source: 'sanctions list',
    addresses: /^\/sdn/,
    sample: '/sample/util/sanctions?name=Mahan%20Air',
    paid: '/paid/util/sanctions?name=Mahan%20Air',
    content: ({ result, lists_checked: lists }) =>
      isText(result) &&
      rows(lists).length === 1 &&
      rows(lists).every(({ entries }) => Number(entries) >= 10_000),
    restarts: true,
  },
]

interface Asked {
  readonly sold: boolean
  readonly code: string
  readonly body: Body
  readonly wait: number
}

t.setTimeout(IS_LONG ? 7_200_000 : 300_000)

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else {
  const shop = await openShop()
  t.teardown(() => shop.close())
  const drawn = fc.sample(changes, { numRuns: CASES, seed: SEED })
  let bought = 0
  const skipped = { status: 0, metrics: 0 }
  /** By source: how often it was sold, and each code of those who were not charged. */
  const seen = new Map<string, Record<string, number>>()

  let filled: Promise<unknown> = Promise.resolve()
  /** For each purchase: one that asks again at once is given the answer it has paid for. Filled one after the other. */
  const newWallet = (): ReturnType<typeof shop.wallet> => {
    const wallet = filled.then(async () => shop.wallet())
    filled = wallet.catch(() => undefined)
    return wallet
  }

  const buy = async (lane: Lane, paid: Target['paid'], number: number): Promise<Asked> => {
    const wallet = await newWallet()
    if (typeof paid === 'string')
      return askedOf(await stockFetch(wallet)(lane.url() + paid.replace('{n}', String(number))))
    const url = `${lane.url()}/mcp/tools`
    const { content: demand } = await callTool(url, paid.tool, paid.args)
    const { payload } = await sign(demand as unknown as Challenge, wallet)
    const { isError, content } = await callTool(url, paid.tool, paid.args, {
      meta: { 'x402/payment': payload },
    })
    const { code = '', retry_after: wait = 0 } = content
    return { sold: !isError, code: typeof code === 'string' ? code : '', body: content, wait: Number(wait) }
  }

  const ask = async (lane: Lane, target: Target, number: number, isBought: boolean): Promise<Asked> => {
    for (;;) {
      await lane.forget()
      const headers = { 'x-forwarded-for': `203.0.${(number >> 8) & 255}.${number & 255}` }
      const asked =
        isBought || target.sample === undefined
          ? await buy(lane, target.paid, number)
          : await askedOf(await fetch(lane.url() + target.sample, { headers }))
      // Our own budget of the source: only the long run asks so often.
      if (!IS_LONG || asked.code !== 'source_limited') return asked
      await pause(asked.wait * 1000)
    }
  }

  /** Asks for malformed answers of one source, from one of them on. */
  const examine = async (t: Test, lane: Lane, target: Target, from: number): Promise<void> => {
    const counts = seen.get(target.source) ?? { sold: 0 }
    seen.set(target.source, counts)
    const differs = new Set<string>()
    const before = lane.reached()
    // A start takes a second, and a list three more.
    const most = target.restarts === true && !IS_LONG ? 2 : OF_ONE_PROCESS
    const made = drawn.slice(from, from + most)
    for (const [index, change] of made.entries()) {
      const place = from + index
      lane.spoil(target.addresses, change)
      if (target.restarts === true) await lane.restart()
      const isBought = target.sample === undefined || place % BOUGHT === 0
      const { sold, code, body } = await ask(lane, target, place, isBought)
      const told = `${target.source} ${place}: ${JSON.stringify(body).slice(0, 300)}`
      const outcome = sold ? 'sold' : code
      counts[outcome] = (counts[outcome] ?? 0) + 1
      if (sold) {
        if (isBought) bought += 1
        assertClean(body)
        for (const each of differences(nameOf(target, isBought), body))
          differs.add(each.replace(/\/\d+/g, '/#'))
        if (!target.content(body)) t.fail(`without content: ${told}`)
      } else {
        if (!REFUSALS.has(code)) t.fail(told)
        if (isBought && body['charged'] !== 'no') t.fail(`charged: ${told}`)
      }
    }
    t.ok(lane.reached() > before, `${target.source}: answers were changed`)
    t.strictSame([...differs], [], `${target.source}: every answer fits the schema of its route`)
    if (target.restarts === true) return
    const { status, metrics } = await lane.skipped()
    skipped.status += status
    skipped.metrics += metrics
  }

  t.test(`sells none of ${CASES} malformed answers of each source without content`, async (t) => {
    if (IS_LONG) {
      const parts = TARGETS.flatMap((target) =>
        Array.from({ length: Math.ceil(CASES / OF_ONE_PROCESS) }, (_, part) => ({
          target,
          from: part * OF_ONE_PROCESS,
        })),
      )
      // What restarts takes the longest.
      parts.sort(
        (one, other) => Number(other.target.restarts ?? false) - Number(one.target.restarts ?? false),
      )
      const worker = async (): Promise<void> => {
        for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
          const lane = await openLane(t, shop)
          await examine(t, lane, part.target, part.from)
          await lane.stop()
        }
      }
      await Promise.all(Array.from({ length: PROCESSES }, worker))
    } else {
      const lane = await openLane(t, shop)
      for (const target of TARGETS) await examine(t, lane, target, 0)
    }
    for (const [source, { sold = 0, ...refused }] of seen)
      t.comment(
        `| ${source} | ${sold} | ${
          Object.entries(refused)
            .map(([code, count]) => `${code} ${count}`)
            .join(', ') || '–'
        } |`,
      )
    t.equal((await shop.witness.received(shop.payTo)).length, bought, 'charged is answered')
  })

  t.test('shows the rows that were skipped in /status.json and in the metrics', async (t) => {
    t.ok(skipped.status > 0, String(skipped.status))
    t.ok(skipped.metrics >= skipped.status, String(skipped.metrics))
  })
}

/** As the catalog calls what was asked. */
function nameOf({ paid, sample }: Target, isBought: boolean): string {
  if (typeof paid !== 'string') return paid.tool
  const [path = ''] = (isBought || sample === undefined ? paid : sample).split('?')
  return path.replace(`/app/${GAME}`, '/app/{appid}')
}

async function askedOf(response: Response): Promise<Asked> {
  const body = (await response.json()) as Body
  const wait = Number(response.headers.get('retry-after') ?? 0)
  return { sold: response.status === 200, code: String(body['code']), body, wait }
}
