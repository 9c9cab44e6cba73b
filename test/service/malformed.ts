import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/engine/json.ts'
import { schemaDifferences } from './support/answer-shape.ts'
import { fc } from '../support/fast-check.ts'
import { openSourcedService, type SourcedService } from './support/sourced-service.ts'
import { callTool } from '../support/mcp.ts'
import { sign, stockFetch, type Challenge } from '../support/payment.ts'
import { redisAbsence } from '../support/redis.ts'
import { openShop } from '../support/shop.ts'
import { assertClean, changes, type Change } from './support/malformed.ts'

/** Of each source: a few in the suite, 500 by `npm run quality`. */
const CASES = Number(process.env['MALFORMED_CASES'] ?? 6)
/** Only the sources whose name contains this, and from this case on. */
const ONLY = process.env['MALFORMED_SOURCE'] ?? ''
const FROM = Number(process.env['MALFORMED_FROM'] ?? 0)
/** Servers that share the cases: a few wait for their chain or start again while others work. */
const PROCESSES = Number(process.env['MALFORMED_PROCESSES'] ?? (CASES > 6 ? 4 : 1))
/** A server is started again when it has refused so many cases because it had asked their source too often. */
const MOST_LIMITED = 25
/** So often a case is tried before it counts as refused for that. */
const ATTEMPTS = 4
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
  /** An answer that was taken is used for hours: the next case needs another process. */
  readonly isKept?: boolean
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const rows = (value: unknown): Body[] => (Array.isArray(value) ? (value as Body[]) : [])
const named = (value: unknown): boolean => {
  const list = rows(value)
  return list.length > 0 && list.every(({ name }) => isText(name))
}

/**
 * Of a site whose name servers fail and that has no page: what the registry says is all there is to sell. Some, such as
 * that of .de, name no registrar and only the date of the last change.
 */
const isRegistered: Target['content'] = ({ registration }) => {
  const { registered, registrar, status, ...others } = (registration ?? {}) as Body
  const { created_at: created, expires_at: expires, updated_at: updated } = others
  return (
    registered === false ||
    [registrar, created, expires, updated].some(isText) ||
    (Array.isArray(status) && status.some(isText))
  )
}

const ALL_TARGETS: readonly Target[] = [
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
    addresses: /^\/rdap\/domain/,
    sample: undefined,
    paid: '/paid/util/site-intel?target=case{n}.com',
    content: isRegistered,
  },
  {
    source: 'list of registries',
    addresses: /^\/rdap\/dns/,
    sample: undefined,
    paid: '/paid/util/site-intel?target=case{n}.com',
    content: isRegistered,
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
    isKept: true,
  },
]

const TARGETS = ALL_TARGETS.filter(({ source }) => source.includes(ONLY))

/** One malformed answer of one source. */
interface Case {
  readonly target: Target
  readonly change: readonly Change[]
  readonly place: number
  readonly attempts: number
}

interface Asked {
  readonly sold: boolean
  readonly code: string
  readonly body: Body
}

// Each child process ends with this one.
process.setMaxListeners(100)
t.setTimeout(CASES > 6 ? 7_200_000 : 300_000)

const absence = redisAbsence()
if (absence !== undefined) t.plan(0, absence)
else {
  const shop = await openShop()
  t.teardown(() => shop.close())
  const drawn = fc.sample(changes, { numRuns: FROM + CASES, seed: SEED }).slice(FROM)
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

  const buy = async (sourced: SourcedService, paid: Target['paid'], number: number): Promise<Asked> => {
    const wallet = await newWallet()
    if (typeof paid === 'string')
      return askedOf(await stockFetch(wallet)(sourced.url() + paid.replace('{n}', String(number))))
    const url = `${sourced.url()}/mcp/tools`
    const { content: demand } = await callTool(url, paid.tool, paid.args)
    const { payload } = await sign(demand as unknown as Challenge, wallet)
    const { isError, content } = await callTool(url, paid.tool, paid.args, {
      meta: { 'x402/payment': payload },
    })
    const { code = '' } = content
    return { sold: !isError, code: typeof code === 'string' ? code : '', body: content }
  }

  const ask = async (sourced: SourcedService, target: Target, number: number): Promise<Asked> => {
    await sourced.forget()
    if (target.sample === undefined || number % BOUGHT === 0) return buy(sourced, target.paid, number)
    const headers = { 'x-forwarded-for': `203.0.${(number >> 8) & 255}.${number & 255}` }
    return askedOf(await fetch(sourced.url() + target.sample, { headers }))
  }

  const count = async (sourced: SourcedService): Promise<void> => {
    const { status, metrics } = await sourced.skipped()
    skipped.status += status
    skipped.metrics += metrics
  }

  /** The sources in turn, so that each has time until it is asked again. */
  const cases: Case[] = drawn.flatMap((change, index) =>
    TARGETS.map((target) => ({ target, change, place: FROM + index, attempts: 1 })),
  )
  const reached = new Map<string, number>()
  const differs = new Set<string>()

  /** Undefined: it has to be tried again, since the server does not ask the source now, or the chain is busy. */
  const examine = async (t: Test, sourced: SourcedService, each: Case): Promise<Asked | undefined> => {
    const { target, change, place, attempts } = each
    const { source, content } = target
    const before = sourced.reached()
    sourced.spoil(target.addresses, change)
    if (target.isKept === true) sourced.placeList()
    const asked = await ask(sourced, target, place)
    const { sold, code, body } = asked
    if (['source_limited', 'chain_unavailable'].includes(code) && attempts < ATTEMPTS) {
      cases.push({ ...each, attempts: attempts + 1 })
      return undefined
    }
    reached.set(source, (reached.get(source) ?? 0) + sourced.reached() - before)
    const isBought = target.sample === undefined || place % BOUGHT === 0
    const told = `${source} ${place}: ${JSON.stringify(body).slice(0, 300)}`
    const counts = seen.get(source) ?? { sold: 0 }
    seen.set(source, counts)
    const outcome = sold ? 'sold' : code
    counts[outcome] = (counts[outcome] ?? 0) + 1
    if (sold) {
      if (isBought) bought += 1
      assertClean(body)
      for (const each of schemaDifferences(nameOf(target, isBought), body))
        differs.add(`${source}: ${each.replace(/\/\d+/g, '/#')}`)
      if (!content(body)) t.fail(`without content: ${told}`)
    } else {
      if (!REFUSALS.has(code)) t.fail(told)
      if (isBought && body['charged'] !== 'no') t.fail(`charged: ${told}`)
    }
    return asked
  }

  const work = async (t: Test): Promise<void> => {
    const sourced = await openSourcedService(t, shop)
    let [limited, isListTaken] = [0, false]
    for (let each = cases.shift(); each !== undefined; each = cases.shift()) {
      const isKept = each.target.isKept === true
      if ((isKept && isListTaken) || limited >= MOST_LIMITED) {
        await count(sourced)
        await sourced.restart()
        limited = 0
        isListTaken = false
      }
      const asked = await examine(t, sourced, each)
      if (asked === undefined) limited += 1
      else if (isKept) isListTaken = asked.sold
    }
    await count(sourced)
    await sourced.stop()
  }

  t.test(`sells none of ${CASES} malformed answers of each source without content`, async (t) => {
    await Promise.all(Array.from({ length: PROCESSES }, () => work(t)))
    for (const { source } of TARGETS) t.ok(reached.get(source), `${source}: answers were changed`)
    t.strictSame([...differs], [], 'every answer fits the schema of its route')
    for (const [source, { sold = 0, ...refused }] of seen)
      t.comment(
        `| ${source} | ${sold} | ${
          Object.entries(refused)
            .map(([code, count]) => `${code} ${count}`)
            .join(', ') || '–'
        } |`,
      )
    t.equal((await shop.onchain.received(shop.payTo)).length, bought, 'charged is answered')
  })

  t.test('shows the rows that were skipped in /status.json and in the metrics', async (t) => {
    // Not every source has rows.
    if (ONLY === '') t.ok(skipped.status > 0, String(skipped.status))
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
  return { sold: response.status === 200, code: String(body['code']), body }
}
