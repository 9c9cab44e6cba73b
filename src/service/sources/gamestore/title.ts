import { moneyFromHundredths, type Money } from '../shown-money.ts'
import type { Digits, FeaturedItem, Platforms, PurchaseOption, StoreItem } from './shapes.ts'

/** One game (or other app) of the store, in our own words. Null is unknown, except for a price: a free game has none. */
export interface Title {
  readonly appid: number
  readonly name: string
  readonly type: string | null
  readonly isFree: boolean
  readonly price: Money | null
  /** Equal to the price while there is no discount. */
  readonly originalPrice: Money | null
  readonly discountPercent: number
  /** ISO 8601, UTC. */
  readonly discountEndsAt: string | null
  readonly reviews: Reviews
  /** `YYYY-MM-DD` in UTC. */
  readonly releaseDate: string | null
  readonly platforms: readonly string[] | null
  readonly headerImage: string | null
}
export interface Reviews {
  readonly label: string | null
  readonly percentPositive: number | null
  readonly count: number | null
}

/** The store's own numbering. */
const TYPES = [
  'game',
  'demo',
  'mod',
  'movie',
  'dlc',
  'guide',
  'software',
  'video',
  'series',
  'episode',
  'hardware',
  'music',
  'beta',
  'tool',
  'advertising',
] as const
const ASSETS = 'https://shared.akamai.steamstatic.com/store_item_assets/'

/**
 * A title from an entry of the item batch, priced in `currency`; undefined when the store has no data for it. Throws
 * RangeError for an amount the currency cannot hold.
 */
export function titleOfStoreItem(item: StoreItem, currency: string): Title | undefined {
  const { appid, name, best_purchase_option: option } = item
  if (item.success !== 1 || typeof appid !== 'number' || typeof name !== 'string' || name === '')
    return undefined
  const isFree = item.is_free ?? false
  const price = isFree ? null : priced(option?.final_price_in_cents, currency, option?.formatted_final_price)
  const original = priced(option?.original_price_in_cents, currency, option?.formatted_original_price)
  const summary = item.reviews?.summary_filtered
  return {
    appid,
    name,
    type: typeof item.type === 'number' ? (TYPES[item.type] ?? 'other') : null,
    isFree,
    price,
    originalPrice: price && (original ?? price),
    discountPercent: (price && whole(option?.discount_pct)) ?? 0,
    discountEndsAt: endOf(price && option?.active_discounts),
    reviews: {
      label: summary?.review_score_label ?? null,
      percentPositive: whole(summary?.percent_positive),
      count: whole(summary?.review_count),
    },
    releaseDate: dateOf(item.release?.steam_release_date),
    platforms: platformsOf(item.platforms),
    headerImage: imageOf(item.assets?.asset_url_format, item.assets?.header),
  }
}

/** A title from an entry of the front page, which knows its own currency but little else. Throws as the other does. */
export function titleOfFeatured(item: FeaturedItem): Title {
  const isFree = item.final_price === 0 && (item.original_price ?? 0) === 0
  const price = isFree ? null : priced(item.final_price, item.currency)
  return {
    appid: item.id,
    name: item.name,
    type: null,
    isFree,
    price,
    originalPrice: price && (priced(item.original_price, item.currency) ?? price),
    discountPercent: (price && item.discount_percent) ?? 0,
    discountEndsAt: null,
    reviews: { label: null, percentPositive: null, count: null },
    releaseDate: null,
    platforms: null,
    headerImage: item.header_image?.startsWith('https://') ? item.header_image : null,
  }
}

function whole(digits: Digits | null | undefined): number | null {
  return digits === null || digits === undefined ? null : Number(digits)
}

function priced(
  hundredths: Digits | null | undefined,
  currency: string,
  formatted?: string | null,
): Money | null {
  if (hundredths === null || hundredths === undefined) return null
  return moneyFromHundredths(BigInt(hundredths), currency, formatted)
}

/** The first end: from then on the price is another. */
function endOf(discounts: PurchaseOption['active_discounts']): string | null {
  const ends = (discounts ?? []).flatMap(({ discount_end_date: end }) => end || [])
  return ends.length === 0 ? null : new Date(Math.min(...ends) * 1000).toISOString()
}

function dateOf(seconds: number | null | undefined): string | null {
  return seconds ? new Date(seconds * 1000).toISOString().slice(0, 10) : null
}

function platformsOf(platforms: Platforms | null | undefined): string[] | null {
  if (!platforms) return null
  const named = [
    ['windows', platforms.windows],
    ['mac', platforms.mac],
    ['linux', platforms.steamos_linux],
  ] as const
  return named.flatMap(([name, runs]) => (runs ? [name] : []))
}

function imageOf(format: string | null | undefined, file: string | null | undefined): string | null {
  // A function, because a file name may hold the `$` patterns of a replacement string.
  return format && file ? ASSETS + format.replace('${FILENAME}', () => file) : null
}
