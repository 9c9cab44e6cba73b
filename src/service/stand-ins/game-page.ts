import { storeCurrency } from '../data/store-currencies.ts'
import { findGame, GAMES, type InventedGame } from './games.ts'
import { finalPrice, formatPrice, fullPrice } from './prices.ts'
import { json, type StandInResponse } from './stand-in.ts'

const HOST = 'https://shared.akamai.steamstatic.com/store_item_assets/steam'
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const STUDIOS = ['Tallow & Finch', 'Kiln Street Games', 'Oddfathom', 'Pinwheel Foundry', 'Late Lantern']
const GENRES = ['Action', 'Adventure', 'Strategy', 'Simulation', 'RPG', 'Indie']
/** Its page is not shown, its entry in the batch is: as with some games in some countries. */
const HIDDEN = GAMES[5]
/** Sold for adults: the store writes the age as text then. */
const ADULT = GAMES[6]
/** Not played through the store: there is no count. */
const UNCOUNTED = GAMES[31]

/** `api/appdetails`: an unknown app is an answer too. */
export function appPage(appid: number, country: string): object {
  const game = findGame(appid)
  const shown = game !== undefined && game !== HIDDEN
  return { [appid]: shown ? { success: true, data: data(appid, game, country) } : { success: false } }
}

function data(appid: number, game: InventedGame, country: string): object {
  const currency = storeCurrency(country) ?? 'USD'
  const [year, month, day] = game.released.split('-').map(Number)
  const place = GAMES.indexOf(game)
  const studio = STUDIOS[(place + STUDIOS.length) % STUDIOS.length] ?? ''
  return {
    type: game.kind,
    name: game.name,
    steam_appid: appid,
    required_age: game === ADULT ? '17' : 0,
    is_free: game.cents === 0,
    detailed_description: `<h1>${game.name}</h1><p>Nobody can buy this game.`,
    short_description: `${game.name}: an invented game &amp; nobody's to buy. &quot;Ten out of ten.&quot;`,
    supported_languages:
      'English<strong>*</strong>, German, Japanese<br><strong>*</strong>languages with full audio support',
    header_image: `${HOST}/apps/${game.appid}/header.jpg?t=1`,
    website: place % 2 === 0 ? 'https://games.example/' : null,
    pc_requirements: place % 3 === 0 ? [] : { minimum: 'A computer' },
    developers: [studio],
    publishers: [studio],
    ...(game.cents > 0 && { price_overview: priceOverview(game, currency) }),
    platforms: Object.fromEntries(
      (['windows', 'mac', 'linux'] as const).map((name) => [name, game.platforms.includes(name)]),
    ),
    ...(place % 2 === 0 && {
      metacritic: { score: game.percentPositive - 4, url: 'https://scores.example/' },
    }),
    categories: [
      { id: 2, description: 'Single-player' },
      { id: 22, description: 'Steam Achievements' },
    ],
    genres: [
      { id: '1', description: GENRES[(place + 1) % GENRES.length] },
      ...(game.cents === 0 ? [{ id: '37', description: 'Free To Play' }] : []),
    ],
    achievements: { total: 12 + (place % 5) * 7 },
    release_date: { coming_soon: false, date: `${MONTHS[(month ?? 1) - 1]} ${day}, ${year}` },
  }
}

function priceOverview(game: InventedGame, currency: string): object {
  const [initial, final] = [fullPrice(game, currency), finalPrice(game, currency)]
  return {
    currency,
    initial,
    final,
    discount_percent: game.discountPercent,
    initial_formatted: initial === final ? '' : formatPrice(initial, currency),
    final_formatted: formatPrice(final, currency),
  }
}

/** `appreviews`: without being told otherwise, it counts half of them. */
export function reviewTotals(appid: number, query: URLSearchParams): object {
  const game = findGame(appid)
  const all = query.get('language') === 'all' && query.get('purchase_type') === 'all'
  const total = Math.floor((game?.reviews ?? 0) / (all ? 1 : 2))
  const positive = Math.round((total * (game?.percentPositive ?? 0)) / 100)
  return {
    success: 1,
    query_summary: {
      num_reviews: Math.min(1, total),
      review_score: total === 0 ? 0 : scoreOf(game?.percentPositive ?? 0),
      review_score_desc: total === 0 ? 'No user reviews' : 'Positive',
      total_positive: positive,
      total_negative: total - positive,
      total_reviews: total,
    },
    reviews: [],
    cursor: '*',
  }
}

function scoreOf(percent: number): number {
  return percent >= 95 ? 9 : percent >= 80 ? 8 : percent >= 70 ? 6 : 5
}

/** `GetNumberOfCurrentPlayers`: what has no count is not found. */
export function players(appid: number): StandInResponse {
  const game = findGame(appid)
  if (game === undefined || game === UNCOUNTED) return { ...json({ response: { result: 42 } }), status: 404 }
  return json({ response: { player_count: Math.floor(game.reviews / 9), result: 1 } })
}
