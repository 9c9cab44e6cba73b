import { Failure, type Source } from 'ratecard/handler'
import { storeCurrency } from '../data/store-currencies.ts'
import { APP_PAGES, detailsOf, type Details } from './gamestore/details.ts'
import { FEATURED, ITEMS, QUERIED, SEARCH, WEEKLY, type StoreItem } from './gamestore/shapes.ts'
import { PLAYERS, REVIEWS, type ReviewTotals } from './gamestore/store-figures.ts'
import { attempt } from './attempt.ts'
import { titleOfFeatured, titleOfStoreItem, type Title } from './gamestore/title.ts'
import { JsonSource } from './json-source.ts'
import type { SourceMetrics, MetricsBySource } from './source-metrics.ts'
import type { Runtime } from './source-runtime.ts'

export interface GamestoreOptions {
  /** Source name in answers. */
  readonly source: Source
  /** Base addresses of the two hosts. */
  readonly storeUrl: string
  readonly apiUrl: string
  /** For each question; three of them, one after the other, must fit into the time of a request. */
  readonly timeoutMs: number
}

/** The store itself; a caller replaces what differs. */
export const LIVE_GAMESTORE: GamestoreOptions = {
  source: { name: 'Steam store', url: 'https://store.steampowered.com/' },
  storeUrl: 'https://store.steampowered.com',
  apiUrl: 'https://api.steampowered.com',
  timeoutMs: 4000,
}

/** A position in a ranking; without a title when neither the ranking nor the store has one. */
export interface Listing {
  readonly appid: number
  readonly title: Title | undefined
}

/** Games on sale, the best-selling first. */
export interface Discounted {
  readonly titles: readonly Title[]
  /** How many entries were read for them. */
  readonly read: number
  /** How many games are on sale; undefined when the store does not say. */
  readonly total: number | undefined
  /** Pages that could not be read. */
  readonly missingPages: number
}

/** Entries per page of the store's query, which allows 1,000: fewer stay below our size limit for answers. */
const PAGE = 500
/** Entries of the query that are read at most. */
const MOST_DISCOUNTED = 2000
/**
 * How the query orders what it finds: 1 title, 10 top sellers, 20 new and trending, 21 top rated, 30 most played, 40
 * newest. The numbers are documented nowhere; public clients measured them in October 2026. Without one, pages overlap.
 */
const TOP_SELLERS = 10

/** The store's default currency for countries that are not in our table. */
const ELSEWHERE = 'USD'
const LANGUAGE = 'english'
const DETAILS = {
  include_basic_info: true,
  include_reviews: true,
  include_release: true,
  include_platforms: true,
  include_assets: true,
}

/**
 * The game store, read through its public addresses. Countries are ISO 3166-1 alpha-2, upper case; rankings are in
 * order and name each app once. Every method throws `Failure` as `JsonSource` does, and `source_error` for an empty
 * ranking.
 */
export class Gamestore {
  readonly source: Source
  readonly #store: JsonSource
  readonly #api: JsonSource
  readonly #storeRecord: SourceMetrics
  readonly #apiRecord: SourceMetrics

  constructor(
    { source, storeUrl, apiUrl, timeoutMs }: GamestoreOptions,
    runtime: Runtime,
    records: MetricsBySource,
  ) {
    this.source = source
    this.#storeRecord = records.of('steam-store')
    this.#apiRecord = records.of('steam-api')
    // The store was measured to limit one address at about 0.7 calls a second after some 250.
    const slow = { perSecond: 0.6, burst: 60 }
    this.#store = new JsonSource(
      { name: 'The game store', baseUrl: storeUrl, rate: slow, timeoutMs },
      runtime,
      this.#storeRecord,
    )
    const fast = { perSecond: 5, burst: 20 }
    this.#api = new JsonSource(
      { name: 'The item service of the game store', baseUrl: apiUrl, rate: fast, timeoutMs },
      runtime,
      this.#apiRecord,
    )
  }

  /** The currency of a country's prices; `assumed` when no table knows it. */
  currency(country: string): { readonly code: string; readonly assumed: boolean } {
    const code = storeCurrency(country)
    return { code: code ?? ELSEWHERE, assumed: code === undefined }
  }

  /** The first `count` entries of the live top sellers of a country, or of those at a discount, without packages. */
  async search(
    country: string,
    among: 'all' | 'discounted',
    count: number,
    signal: AbortSignal,
  ): Promise<readonly Listing[]> {
    const query = {
      ...(among === 'discounted' && { specials: '1' }),
      query: '',
      start: '0',
      count: String(count),
      filter: 'topsellers',
      category1: '998', // games only
      json: '1',
      cc: country,
      l: LANGUAGE,
    }
    const { items } = await this.#store.get({ path: '/search/results/', query, shape: SEARCH }, signal)
    return ranking(
      items.flatMap(({ logo }) => {
        const appid = Number(/\/apps\/(\d{1,10})\//.exec(logo)?.[1] ?? 0)
        return appid === 0 ? [] : [{ appid, title: undefined }]
      }),
    )
  }

  /** What the store knows of up to 100 apps, as sold in a country; those it has no data for are absent. */
  async items(
    appids: readonly number[],
    country: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, Title>> {
    const input = {
      ids: appids.map((appid) => ({ appid })),
      context: { language: LANGUAGE, country_code: country, steam_realm: 1 },
      data_request: DETAILS,
    }
    const path = '/IStoreBrowseService/GetItems/v1/'
    const { response } = await this.#api.get({ path, query: inputJson(input), shape: ITEMS }, signal)
    const titles = this.#titles(response.store_items, country)
    return new Map(titles.map((title) => [title.appid, title]))
  }

  /**
   * The best-selling games that are sold at a discount in a country, up to 2,000, each with its title. The first page
   * must be there; of the others a gap is said.
   */
  async discounted(country: string, signal: AbortSignal): Promise<Discounted> {
    const first = await this.#discountedPage(country, 0, signal)
    const until = Math.min(first.total ?? 0, MOST_DISCOUNTED)
    const starts = Array.from({ length: Math.ceil(until / PAGE) - 1 }, (_, page) => (page + 1) * PAGE)
    const others = await Promise.all(
      starts.map((start) => attempt(this.#discountedPage(country, start, signal))),
    )
    const pages = [first, ...others.flatMap((each) => (each.kind === 'done' ? each.value : []))]
    const once = new Map(pages.flatMap(({ titles }) => titles).map((title) => [title.appid, title]))
    if (once.size === 0) throw new Failure('source_error', 'The game store named no games')
    return {
      titles: [...once.values()],
      read: new Set(pages.flatMap(({ appids }) => appids)).size,
      total: first.total,
      missingPages: others.filter(({ kind }) => kind === 'failed').length,
    }
  }

  async #discountedPage(
    country: string,
    start: number,
    signal: AbortSignal,
  ): Promise<{
    readonly titles: Title[]
    readonly appids: readonly unknown[]
    readonly total: number | undefined
  }> {
    const input = {
      query: {
        start,
        count: PAGE,
        sort: TOP_SELLERS,
        filters: {
          released_only: true,
          type_filters: { include_games: true },
          price_filters: { min_discount_percent: 1 },
        },
      },
      context: { language: LANGUAGE, country_code: country, steam_realm: 1 },
      data_request: { include_reviews: true },
    }
    const path = '/IStoreQueryService/Query/v1/'
    const { response } = await this.#api.get({ path, query: inputJson(input), shape: QUERIED }, signal)
    const items = response.store_items ?? []
    const total = response.metadata?.total_matching_records ?? undefined
    if (total === undefined) this.#apiRecord.countSkipped('response/metadata/total_matching_records: absent')
    return { titles: this.#titles(items, country), appids: items.map(({ appid }) => appid), total }
  }

  /** The top sellers, or the special offers, on a country's front page: about ten, with prices and little else. */
  async featured(
    country: string,
    list: 'top_sellers' | 'specials',
    signal: AbortSignal,
  ): Promise<readonly Listing[]> {
    const query = { cc: country, l: LANGUAGE }
    const path = '/api/featuredcategories/'
    const { [list]: featured } = await this.#store.get({ path, query, shape: FEATURED }, signal)
    const apps = featured.items.filter(({ type }) => type === 0)
    const titles = exact(apps, titleOfFeatured, this.#storeRecord)
    return ranking(apps.map(({ id }, place) => ({ appid: id, title: titles[place] })))
  }

  /** Last week's official chart of a country. */
  async weekly(country: string, count: number, signal: AbortSignal): Promise<readonly Listing[]> {
    // Two countries: the outer one chooses the chart, the inner one the prices.
    const input = {
      country_code: country,
      page_start: 0,
      page_count: count,
      context: { language: LANGUAGE, country_code: country },
      data_request: DETAILS,
    }
    const path = '/IStoreTopSellersService/GetWeeklyTopSellers/v1/'
    const { response } = await this.#api.get({ path, query: inputJson(input), shape: WEEKLY }, signal)
    const ranks = (response.ranks ?? []).toSorted((one, other) => one.rank - other.rank)
    const items = ranks.flatMap(({ appid, item }) => (item ? [{ ...item, appid }] : []))
    const titles = new Map(this.#titles(items, country).map((title) => [title.appid, title]))
    return ranking(ranks.map(({ appid }) => ({ appid, title: titles.get(appid) })))
  }

  /** The store page of an app as sold in a country; undefined when the store does not show it there. */
  async details(appid: number, country: string, signal: AbortSignal): Promise<Details | undefined> {
    const query = { appids: String(appid), cc: country, l: LANGUAGE }
    const pages = await this.#store.get({ path: '/api/appdetails', query, shape: APP_PAGES }, signal)
    const data = pages[appid]?.data
    return data ? exact([data], detailsOf, this.#storeRecord)[0] : undefined
  }

  /** Review totals of all languages and ways of buying; zeros without reviews. */
  async reviews(appid: number, signal: AbortSignal): Promise<ReviewTotals> {
    // By default, the store counts English reviews of its own buyers only.
    const query = {
      json: '1',
      language: 'all',
      purchase_type: 'all',
      review_type: 'all',
      num_per_page: '1',
      cursor: '*',
    }
    const answer = await this.#store.get({ path: `/appreviews/${appid}`, query, shape: REVIEWS }, signal)
    return answer.query_summary
  }

  /** Players at this moment; undefined when the store counts none for the app, which is not zero. */
  async players(appid: number, signal: AbortSignal): Promise<number | undefined> {
    const path = '/ISteamUserStats/GetNumberOfCurrentPlayers/v1/'
    const answer = await this.#api.find({ path, query: { appid: String(appid) }, shape: PLAYERS }, signal)
    return answer?.response.result === 1 ? (answer.response.player_count ?? undefined) : undefined
  }

  #titles(items: readonly StoreItem[], country: string): Title[] {
    const { code } = this.currency(country)
    return exact(items, (item) => titleOfStoreItem(item, code), this.#apiRecord).flatMap(
      (title) => title ?? [],
    )
  }
}

/** The service takes its arguments as one JSON text; flat parameters are ignored without an error. */
function inputJson(input: object): { readonly input_json: string } {
  return { input_json: JSON.stringify(input) }
}

function ranking(listings: readonly Listing[]): readonly Listing[] {
  if (listings.length === 0) throw new Failure('source_error', 'The game store named no games')
  const first = new Map<number, Listing>()
  for (const listing of listings) if (!first.has(listing.appid)) first.set(listing.appid, listing)
  return [...first.values()]
}

/**
 * Reads entries with prices; undefined for one whose amount its currency cannot hold. Of most of them that shows that we
 * misread the currency: then no price is better than a wrong one.
 */
function exact<Entry, Result>(
  entries: readonly Entry[],
  read: (entry: Entry) => Result,
  record: SourceMetrics,
): (Result | undefined)[] {
  let odd = 0
  const results = entries.map((entry) => {
    try {
      return read(entry)
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause
      odd += 1
      return undefined
    }
  })
  if (odd > 0) record.countSkipped('price: not an amount of its currency', odd)
  if (odd <= entries.length / 2) return results
  throw new Failure('source_error', 'The game store gave prices that their currency cannot hold')
}
