import { Failure, isJsonObject, type JsonObject, type Warning } from 'ratecard/handler'
import type { Gamestore } from '../../sources/gamestore.ts'
import type { Title } from '../../sources/gamestore/title.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { readChart } from './chart.ts'
import { readCountry } from './country.ts'

const SHOWN = 25
const PREVIEWED = 5

/** The games that sell best in a country now, with prices there. */
export function topSellers(store: Gamestore): HandlerWithPreview<'gamestore/top-sellers'> {
  return {
    async run(parameters, { signal }) {
      const country = readCountry(parameters.country)
      const { ranking, listings, warnings } = await readChart(store, country, signal)
      // Hardware and software are no competitors; a game without data keeps its rank and is left out.
      const games = listings.filter(({ title }) => (title?.type ?? 'game') === 'game')
      const ranked = games.flatMap(({ title }, index) => (title ? [{ title, rank: index + 1 }] : []))
      const shown = ranked.slice(0, SHOWN)
      const last = shown.at(-1)
      if (last === undefined)
        throw new Failure('source_error', 'The game store has no data for its top sellers')
      const currency = store.currency(country)
      const items = shown.map(({ title, rank }) => row(rank, title))
      return {
        source: [store.source],
        warnings: [
          ...warnings,
          ...missing(last.rank - shown.length, store),
          ...assumed(currency, country, store),
        ],
        body: { country, currency: currency.code, ranking, count: items.length, items },
      }
    },
    preview,
  }
}

function row(rank: number, title: Title): JsonObject {
  return {
    rank,
    appid: title.appid,
    name: title.name,
    type: title.type,
    url: `https://store.steampowered.com/app/${title.appid}/`,
    is_free: title.isFree,
    price: title.price,
    original_price: title.originalPrice,
    discount_percent: title.discountPercent,
    review_score_desc: title.reviews.label,
    review_percent_positive: title.reviews.percentPositive,
    review_count: title.reviews.count,
    release_date: title.releaseDate,
    platforms: title.platforms,
    header_image: title.headerImage,
  }
}

function missing(count: number, { source }: Gamestore): Warning[] {
  if (count === 0) return []
  const message = `Ranked, but without data in this country, and left out: ${count}`
  return [{ code: 'titles_missing', message, source: source.name }]
}

function assumed(
  { code, assumed }: ReturnType<Gamestore['currency']>,
  country: string,
  { source }: Gamestore,
): Warning[] {
  if (!assumed) return []
  const message = `No currency is on record for ${country}: prices are taken to be in ${code}`
  return [{ code: 'currency_assumed', message, source: source.name }]
}

/** The first five, with what they cost now and nothing more. */
function preview({ country = null, currency = null, items = [] }: JsonObject): JsonObject {
  const first = Array.isArray(items) ? items.filter(isJsonObject).slice(0, PREVIEWED) : []
  return {
    country,
    currency,
    count: first.length,
    items: first.map(({ rank = null, appid = null, name = null, price = null, discount_percent = null }) => ({
      rank,
      appid,
      name,
      price,
      discount_percent,
    })),
  }
}
