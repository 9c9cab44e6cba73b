import { storeCurrency } from '../data/store-currencies.ts'
import { GAMES, HARDWARE, type InventedGame } from './games.ts'
import { appPage, players, reviewTotals } from './game-page.ts'
import { finalPrice, formatPrice, fullPrice } from './prices.ts'
import { json, type StandInRequest, type StandInResponse } from './stand-in.ts'

const HOST = 'https://shared.akamai.steamstatic.com/store_item_assets/steam'
const WEEK_START = Date.parse('2026-11-10T00:00:00Z') / 1000
const SALE_END = Date.parse('2026-12-01T18:00:00Z') / 1000
/** The search lists it, the item batch does not know it: as with games a country may not see. */
const UNSOLD = GAMES[9]

/** Answers as the store does, traps included; undefined for an address it does not have. */
export function answerStore({ path, query }: StandInRequest): StandInResponse | undefined {
  const country = query.get('cc') ?? 'US'
  if (path === '/search/results/') {
    const count = Number(query.get('count') ?? 25)
    const games = query.get('specials') === '1' ? chart(country).filter(isDiscounted) : chart(country)
    return json({ desc: '', items: logos(games).slice(0, count) })
  }
  if (path === '/api/featuredcategories/') return json(frontPage(country))
  if (path === '/api/appdetails') return json(appPage(Number(query.get('appids')), country))
  const appid = /^\/appreviews\/(\d{1,10})$/.exec(path)?.[1]
  return appid === undefined ? undefined : json(reviewTotals(Number(appid), query))
}

/** The item service: arguments are one JSON text, and what it does not understand it answers with `{}`. */
export function answerApi({ path, query }: StandInRequest): StandInResponse | undefined {
  if (path === '/ISteamUserStats/GetNumberOfCurrentPlayers/v1/') return players(Number(query.get('appid')))
  const input = read(query.get('input_json'))
  if (path === '/IStoreBrowseService/GetItems/v1/') {
    const sold = [...GAMES, HARDWARE].filter((game) => game !== UNSOLD)
    const asked = new Set((input.ids ?? []).map(({ appid }) => appid))
    const found = sold.filter(({ appid }) => asked.has(appid))
    return json({ response: { store_items: found.map((game) => storeItem(game, input)) } })
  }
  if (path === '/IStoreQueryService/Query/v1/') return json({ response: queried(input) })
  if (path === '/IStoreTopSellersService/GetWeeklyTopSellers/v1/') return json({ response: weekly(input) })
  return undefined
}

interface Input {
  readonly ids?: readonly { readonly appid: number }[]
  readonly country_code?: string
  readonly context?: { readonly country_code?: string }
  readonly data_request?: object
  readonly query?: {
    readonly start?: number
    readonly count?: number
    readonly sort?: number
    readonly filters?: { readonly price_filters?: { readonly min_discount_percent?: number } }
  }
}

function read(text: string | null): Input {
  const input: unknown = JSON.parse(text ?? '{}')
  return typeof input === 'object' && input !== null ? input : {}
}

/** Every country has its own order, and always the same. */
function chart(country: string): readonly InventedGame[] {
  const seed = Buffer.from(country).reduce((sum, byte) => sum * 5 + byte, 0)
  // 7 and the number of games have no common divisor, so every game has its place.
  return GAMES.flatMap((_, place) => GAMES[(place * 7 + seed) % GAMES.length] ?? [])
}

function logos(games: readonly InventedGame[]): readonly { readonly name: string; readonly logo: string }[] {
  const items = games.map(({ appid, name }, place) => {
    const folder = place % 3 === 0 ? `apps/${appid}/0f3a${appid.toString(16)}` : `apps/${appid}`
    return { name, logo: `${HOST}/${folder}/capsule_sm_120.jpg?t=1` }
  })
  const [first, second] = items
  const pack = { name: 'Gearmoth Hollow: Collected', logo: `${HOST}/subs/990010/capsule_sm_120.jpg?t=1` }
  return first && second ? [first, second, pack, first, ...items.slice(2)] : items
}

function frontPage(country: string): object {
  const currency = storeCurrency(country) ?? 'USD'
  const games = chart(country).slice(0, 8)
  const apps = [...games.slice(0, 3), HARDWARE, ...games.slice(3), ...games.slice(0, 1)]
  const entry = (game: InventedGame) => ({
    id: game.appid,
    type: 0,
    name: game.name,
    discounted: game.discountPercent > 0,
    discount_percent: game.discountPercent,
    original_price: game.cents === 0 ? null : fullPrice(game, currency),
    final_price: finalPrice(game, currency),
    currency,
    windows_available: game.platforms.includes('windows'),
    header_image: `${HOST}/apps/${game.appid}/header.jpg?t=1`,
  })
  const items = apps.map(entry)
  const pack = { ...items[0], id: 990010, type: 1, name: 'Gearmoth Hollow: Collected' }
  return {
    0: { id: 'cat_spotlight', name: 'Spotlights', items: [] },
    specials: {
      id: 'cat_specials',
      name: 'Specials',
      items: chart(country).filter(isDiscounted).slice(0, 10).map(entry),
    },
    top_sellers: { id: 'cat_topsellers', name: 'Top Sellers', items: [pack, ...items] },
    status: 1,
  }
}

/** Pages overlap, so a game may come twice. Of the orders only one says which games sell best: 10. */
function queried(input: Input): object {
  const { start = 0, count = 10, sort, filters } = input.query ?? {}
  const least = filters?.price_filters?.min_discount_percent ?? 0
  const games = sort === 10 ? chart('US') : GAMES.toSorted((one, other) => one.name.localeCompare(other.name))
  const found = games.filter((game) => game.discountPercent >= least && game !== UNSOLD)
  const page = [...found.slice(start, start + count), ...found.slice(start, start + 1)]
  return {
    metadata: { total_matching_records: found.length, start, count: page.length },
    ids: page.map(({ appid }) => ({ appid })),
    store_items: page.map((game) => storeItem(game, input)),
  }
}

function isDiscounted({ discountPercent }: InventedGame): boolean {
  return discountPercent > 0
}

function weekly(input: Input): object {
  const { country_code: country = 'US', data_request: data = {} } = input
  if (Object.keys(data).length === 0 || country === 'ID') return {}
  const games = [HARDWARE, ...chart(country)]
  const ranks = games.map((game, place) => ({
    rank: place + 1,
    appid: game.appid,
    last_week_rank: place + 2,
    item: storeItem(game, input),
  }))
  return { start_date: WEEK_START, ranks }
}

function storeItem(game: InventedGame, { context }: Input): object {
  const currency = storeCurrency(context?.country_code ?? 'US') ?? 'USD'
  return {
    item_type: 0,
    id: game.appid,
    success: 1,
    visible: true,
    name: game.name,
    appid: game.appid,
    type: game.kind === 'game' ? 0 : 10,
    ...(game.cents === 0 ? { is_free: true } : { best_purchase_option: purchase(game, currency) }),
    reviews: {
      summary_filtered: {
        review_count: game.reviews,
        percent_positive: game.percentPositive,
        review_score_label: game.percentPositive < 70 ? 'Mixed' : 'Positive',
      },
    },
    release: { steam_release_date: Date.parse(`${game.released}T17:00:00Z`) / 1000 },
    platforms: Object.fromEntries(
      game.platforms.map((name) => [name === 'linux' ? 'steamos_linux' : name, true]),
    ),
    assets: { asset_url_format: `steam/apps/${game.appid}/\${FILENAME}?t=1`, header: 'header.jpg' },
  }
}

function purchase(game: InventedGame, currency: string): object {
  const [full, final] = [fullPrice(game, currency), finalPrice(game, currency)]
  const option = {
    packageid: game.appid - 4_000_000_000,
    purchase_option_name: game.name,
    final_price_in_cents: String(final),
    formatted_final_price: formatPrice(final, currency),
  }
  if (full === final) return option
  return {
    ...option,
    original_price_in_cents: String(full),
    formatted_original_price: formatPrice(full, currency),
    discount_pct: game.discountPercent,
    active_discounts: [{ discount_amount: String(full - final), discount_end_date: SALE_END }],
  }
}
