import t, { type Test } from 'tap'
import type { JsonObject } from '../../../src/engine/base/json.ts'
import { schemaDifferences } from '../../support/service/answer-shape.ts'
import { fc } from '../../support/fast-check.ts'
import {
  openSourcedService,
  type Engine,
  type ListName,
  type SourcedService,
  type Spoiled,
} from '../../support/service/sourced-service.ts'
import { callTool } from '../../support/mcp.ts'
import { sign, stockFetch, type Challenge } from '../../support/payment.ts'
import { redisAbsence } from '../../support/redis.ts'
import { openShop } from '../../support/shop.ts'
import { assertClean, changes, type Change } from '../../support/service/malformed.ts'

/** Of each source: a few in the suite, 500 by `npm run quality`. */
const CASES = Number(process.env['MALFORMED_CASES'] ?? 2)
/** Only the sources whose name contains this, and from this case on. */
const ONLY = process.env['MALFORMED_SOURCE'] ?? ''
const FROM = Number(process.env['MALFORMED_FROM'] ?? 0)
/** Servers that share the cases: a few wait for their chain or start again while others work. */
const PROCESSES = Number(process.env['MALFORMED_PROCESSES'] ?? (CASES > 3 ? 4 : 1))
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
  'page_unreadable',
])

/** What says nothing of the answer: the server waits for its source, its chain or the start of its memory. */
const AGAIN = new Set(['source_limited', 'chain_unavailable', 'payment_pending', 'handler_timeout'])

type Body = Readonly<Record<string, unknown>>

/** `{n}` in paths is the number of the case, `{site}` a site that has a page. */
interface Target extends Spoiled {
  readonly source: string
  readonly sample: string | undefined
  readonly paid: string | { readonly server?: string; readonly tool: string; readonly args: JsonObject }
  /** What a buyer of the route must find in its answer. */
  readonly content: (body: Body) => boolean
  /** The file in which a server finds the answer. */
  readonly list?: ListName
  readonly engine?: Engine
  /** An answer that was taken is used for hours: for the next case the server is started again. */
  readonly isKept?: boolean
  /** Other sources of which this is so, and which are asked for this, too. */
  readonly holds?: readonly string[]
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

const isBrief: Target['content'] = ({ brief, sources, claims }) =>
  isText(brief) && rows(claims).length > 0 && rows(sources).some(({ url }) => isText(url))

const isCited: Target['content'] = ({ citations }) => Object.values(citations as Body).every(isText)

const LOG_IN = 'log-in of Twitch'
const listOf = (publisher: string): string => `sanctions list of ${publisher}`
const PUBLISHERS = ['OFAC', 'the UN', 'the UK', 'the EU']

/** Of one list; a server that has all it knows of answers at once, and reads another on the side. */
function listTarget(publisher: string, list: ListName, fewest: number): Target {
  const id = list.replace(/\..*/, '')
  return {
    source: listOf(publisher),
    addresses: new RegExp(`^/${id}\\.`),
    sample: '/sample/util/sanctions?name=Mahan%20Air',
    paid: '/paid/util/sanctions?name=Mahan%20Air',
    content: ({ result, lists_checked: lists }) =>
      isText(result) && rows(lists).some((each) => each['id'] === id && Number(each['entries']) >= fewest),
    list,
    isKept: true,
    holds: PUBLISHERS.filter((other) => other !== publisher).map(listOf),
  }
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
    source: 'front page of the store',
    addresses: /^\/steam-store\/api\/featuredcategories/,
    down: /^\/steam-store\/search/,
    sample: '/sample/gamestore/top-sellers?country=IT',
    paid: '/paid/gamestore/top-sellers?country=IT',
    content: ({ items }) => named(items),
  },
  {
    source: 'weekly chart of the store',
    addresses: /^\/steam-api\/IStoreTopSellersService/,
    down: /^\/steam-store\/(?:search|api\/featuredcategories)/,
    sample: '/sample/gamestore/top-sellers?country=ES',
    paid: '/paid/gamestore/top-sellers?country=ES',
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
    holds: [LOG_IN],
  },
  {
    source: 'IGDB',
    addresses: /^\/igdb/,
    sample: '/sample/game/metadata?name=Glasswort%20Colony',
    paid: '/paid/game/metadata?name=Glasswort%20Colony',
    content: ({ game }) => isText((game as Body | null)?.['name']),
    holds: [LOG_IN],
  },
  {
    source: 'Crossref',
    addresses: /^\/crossref/,
    sample: '/sample/util/citation?doi=10.1038/nature14539',
    paid: '/paid/util/citation?doi=10.1038/nature14539',
    content: isCited,
  },
  {
    source: 'DataCite',
    addresses: /^\/datacite/,
    sample: '/sample/util/citation?doi=10.5281/zenodo.4711',
    paid: '/paid/util/citation?doi=10.5281/zenodo.4711',
    content: isCited,
  },
  {
    source: 'doi.org and its agencies',
    addresses: /^\/doi/,
    sample: '/sample/util/citation?doi=10.9999/lamps.7',
    paid: '/paid/util/citation?doi=10.9999/lamps.7',
    content: isCited,
  },
  {
    source: 'DNS',
    addresses: /^\/dns\/(?:.*\.)?(?:mail\d+|example)\.com$/,
    sample: '/sample/util/email-verify?email=ada@mail{n}.com',
    paid: '/paid/util/email-verify?email=ada@mail{n}.com',
    content: ({ status, has_mx: hasServers }) => isText(status) && typeof hasServers === 'boolean',
  },
  {
    source: 'pages that callers name',
    addresses: /^\/page/,
    sample: '/sample/util/extract?url={site}/page',
    paid: '/paid/util/extract?url={site}/page',
    content: ({ word_count: words, chunks }) =>
      Number(words) > 0 && rows(chunks).length > 0 && rows(chunks).every(({ text }) => isText(text)),
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
    source: 'SearXNG',
    addresses: /^\/searxng/,
    sample: undefined,
    paid: { tool: 'web_research', args: { query: 'Which games sold best in Japan last week?' } },
    content: isBrief,
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
    source: 'embeddings of the model',
    addresses: /^\/model\/embeddings/,
    sample: undefined,
    paid: { server: 'memory', tool: 'memory_write', args: { text: TEXT } },
    content: ({ id, bytes }) => isText(id) && Number(bytes) >= TEXT.length,
  },
  listTarget('OFAC', 'us_ofac_sdn.xml', 10_000),
  listTarget('the UN', 'un_sc.xml', 500),
  listTarget('the UK', 'uk_fcdo.csv', 2000),
  listTarget('the EU', 'eu_fsf.xml', 1500),
  {
    source: LOG_IN,
    addresses: /^\/twitch-id/,
    sample: '/sample/game/metadata?name=Glasswort%20Colony',
    paid: '/paid/game/metadata?name=Glasswort%20Colony',
    content: ({ game }) => isText((game as Body | null)?.['name']),
    isKept: true,
  },
  {
    source: 'Brave Search',
    addresses: /^\/brave/,
    sample: undefined,
    paid: { tool: 'web_research', args: { query: 'Which games sold best in Japan last week?' } },
    content: isBrief,
    engine: 'brave',
  },
]

/** For these servers are started again and again: first all others, and in the end one list after the other. */
const groupOf = ({ source, isKept, engine }: Target): number => {
  const list = PUBLISHERS.findIndex((publisher) => source === listOf(publisher))
  return list > 0 ? list + 1 : isKept === true || engine !== undefined ? 1 : 0
}
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
    if (typeof paid === 'string') return askedOf(await stockFetch(wallet)(addressOf(sourced, paid, number)))
    const url = `${sourced.url()}/mcp/${paid.server ?? 'tools'}`
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
    return askedOf(await fetch(addressOf(sourced, target.sample, number), { headers }))
  }

  const count = async (sourced: SourcedService): Promise<void> => {
    const { status, metrics } = await sourced.skipped()
    skipped.status += status
    skipped.metrics += metrics
  }

  /** The sources in turn, so that each has time until it is asked again. */
  const cases: Case[] = PUBLISHERS.map((_, group) => group)
    .concat(PUBLISHERS.length)
    .flatMap((group) =>
      drawn.flatMap((change, index) =>
        TARGETS.filter((target) => groupOf(target) === group).map((target) => ({
          target,
          change,
          place: FROM + index,
          attempts: 1,
        })),
      ),
    )
  const reached = new Map<string, number>()
  const differs = new Set<string>()

  /** Undefined: it has to be tried again, since the server does not ask the source now, or the chain is busy. */
  const examine = async (t: Test, sourced: SourcedService, each: Case): Promise<Asked | undefined> => {
    const { target, change, place, attempts } = each
    const { source, content, list } = target
    const before = sourced.reached()
    sourced.spoil(target, change)
    if (list !== undefined) sourced.placeList(list)
    const asked = await ask(sourced, target, place)
    const { sold, code, body } = asked
    if (AGAIN.has(code) && attempts < ATTEMPTS) {
      cases.push({ ...each, attempts: attempts + 1 })
      return undefined
    }
    reached.set(source, (reached.get(source) ?? 0) + sourced.reached() - before)
    const isBought = target.sample === undefined || place % BOUGHT === 0
    const told = `${source} ${place}: ${JSON.stringify(body).slice(0, 300)}`
    const counts = seen.get(source) ?? { sold: 0, empty: 0 }
    seen.set(source, counts)
    const outcome = !sold ? code : content(body) ? 'sold' : 'empty'
    counts[outcome] = (counts[outcome] ?? 0) + 1
    // At once: all of them take an hour.
    if (Object.values(counts).reduce((sum, count) => sum + count) === CASES) t.comment(rowOf(source, counts))
    if (sold) {
      if (isBought) bought += 1
      assertClean(body)
      for (const each of schemaDifferences(nameOf(target, isBought), body))
        differs.add(`${source}: ${each.replace(/\/\d+/g, '/#')}`)
      if (outcome === 'empty') t.fail(`without content: ${told}`)
    } else {
      if (!REFUSALS.has(code)) t.fail(told)
      if (isBought && body['charged'] !== 'no') t.fail(`charged: ${told}`)
    }
    return asked
  }

  const work = async (t: Test): Promise<void> => {
    const sourced = await openSourcedService(t, shop)
    let limited = 0
    let active: Engine = 'searxng'
    const held = new Set<string>()
    for (let each = cases.shift(); each !== undefined; each = cases.shift()) {
      const { source, paid, engine = 'searxng', isKept, holds = [] } = each.target
      const isOtherEngine: boolean =
        typeof paid !== 'string' && paid.tool === 'web_research' && engine !== active
      if (held.has(source) || isOtherEngine || limited >= MOST_LIMITED) {
        await count(sourced)
        await sourced.restart((active = isOtherEngine ? engine : active))
        limited = 0
        held.clear()
      }
      const asked = await examine(t, sourced, each)
      if (asked === undefined) limited += 1
      for (const name of holds) held.add(name)
      if (isKept === true && asked?.sold === true) held.add(source)
    }
    await count(sourced)
    await sourced.stop()
  }

  t.test(`sells none of ${CASES} malformed answers of each source without content`, async (t) => {
    t.comment('| source | sold with content | refused, not charged | charged without content |')
    t.comment('| --- | --- | --- | --- |')
    await Promise.all(Array.from({ length: PROCESSES }, () => work(t)))
    for (const { source } of TARGETS) t.ok(reached.get(source), `${source}: answers were changed`)
    t.strictSame([...differs], [], 'every answer fits the schema of its route')
    t.equal((await shop.onchain.received(shop.payTo)).length, bought, 'charged is answered')
  })

  t.test('shows the rows that were skipped in /status.json and in the metrics', async (t) => {
    // Not every source has rows.
    if (ONLY === '') t.ok(skipped.status > 0, String(skipped.status))
    t.ok(skipped.metrics >= skipped.status, String(skipped.metrics))
  })
}

function rowOf(
  source: string,
  { sold = 0, empty = 0, ...refused }: Readonly<Record<string, number>>,
): string {
  const codes = Object.entries(refused).map(([code, count]) => `${code} ${count}`)
  return `| ${[source, sold, codes.join(', ') || '0', empty].join(' | ')} |`
}

function addressOf(sourced: SourcedService, path: string, number: number): string {
  return sourced.url() + path.replace('{n}', String(number)).replace('{site}', sourced.site())
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
