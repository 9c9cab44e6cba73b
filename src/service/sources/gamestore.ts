import { Failure, type Source } from '../../engine/index.ts'
import { storeCurrency } from '../data/store-currencies.ts'
import { APP_PAGES, detailsOf, type Details } from './gamestore/details.ts'
import { FEATURED, ITEMS, SEARCH, WEEKLY, type StoreItem } from './gamestore/shapes.ts'
import { PLAYERS, REVIEWS, type ReviewTotals } from './gamestore/figures.ts'
import { titleOfFeatured, titleOfStoreItem, type Title } from './gamestore/title.ts'
import { JsonSource } from './json-source.ts'
import type { SourceRecords } from './source-record.ts'
import type { World } from './world.ts'

export interface GamestoreOptions {
  /** As answers name where their data comes from. */
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

/** A place in a ranking; without a title when the ranking itself says no more, or the store has no data for it. */
export interface Listing {
  readonly appid: number
  readonly title: Title | undefined
}

/** What the store prices a country in when our table does not know: so it says of itself. */
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

  constructor(
    { source, storeUrl, apiUrl, timeoutMs }: GamestoreOptions,
    world: World,
    records: SourceRecords,
  ) {
    this.source = source
    // The store was measured to limit one address at about 0.7 calls a second after some 250.
    const slow = { perSecond: 0.6, burst: 60 }
    this.#store = new JsonSource(
      { name: 'The game store', baseUrl: storeUrl, rate: slow, timeoutMs },
      world,
      records.of('steam-store'),
    )
    const fast = { perSecond: 5, burst: 20 }
    this.#api = new JsonSource(
      { name: 'The item service of the game store', baseUrl: apiUrl, rate: fast, timeoutMs },
      world,
      records.of('steam-api'),
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
    const titles = response.store_items.flatMap((item) => this.#title(item, country) ?? [])
    return new Map(titles.map((title) => [title.appid, title]))
  }

  /** Up to `count` games sold at a discount in a country, in the store's own order, each with its title. */
  async discounted(country: string, count: number, signal: AbortSignal): Promise<readonly Title[]> {
    const input = {
      query: {
        start: 0,
        count,
        // Without an order, the store's own pages overlap.
        sort: 2,
        filters: {
          type_filters: { include_games: true },
          price_filters: { min_discount_percent: 1 },
        },
      },
      context: { language: LANGUAGE, country_code: country, steam_realm: 1 },
      data_request: { include_reviews: true },
    }
    const path = '/IStoreQueryService/Query/v1/'
    const { response } = await this.#api.get({ path, query: inputJson(input), shape: ITEMS }, signal)
    const titles = response.store_items.flatMap((item) => this.#title(item, country) ?? [])
    const once = new Map(titles.map((title) => [title.appid, title]))
    if (once.size === 0) throw new Failure('source_error', 'The game store named no games')
    return [...once.values()]
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
    return ranking(apps.map((item) => ({ appid: item.id, title: exact(() => titleOfFeatured(item)) })))
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
    return ranking(
      ranks.map(({ appid, item }) => ({
        appid,
        title: item ? this.#title({ ...item, appid }, country) : undefined,
      })),
    )
  }

  /** The store page of an app as sold in a country; undefined when the store does not show it there. */
  async details(appid: number, country: string, signal: AbortSignal): Promise<Details | undefined> {
    const query = { appids: String(appid), cc: country, l: LANGUAGE }
    const pages = await this.#store.get({ path: '/api/appdetails', query, shape: APP_PAGES }, signal)
    const data = pages[appid]?.data
    return data ? exact(() => detailsOf(data)) : undefined
  }

  /** Review totals over all languages and ways of buying; zeros when nobody has written one. */
  async reviews(appid: number, signal: AbortSignal): Promise<ReviewTotals> {
    // Unless told otherwise, the store counts those in English by buyers in the store only.
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

  #title(item: StoreItem, country: string): Title | undefined {
    return exact(() => titleOfStoreItem(item, this.currency(country).code))
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

/** An amount its currency cannot hold shows that we misread the currency: then no price is better than a wrong one. */
function exact<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new Failure('source_error', 'The game store gave a price that its currency cannot hold', { cause })
  }
}
