import { isJsonObject, staleWarning, type JsonObject, type Warning } from 'ratecard/handler'
import type { Gamestore } from '../../sources/gamestore.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { COUNTRY, isDealPool, readDealPool, type Deal, type DealPool } from './deal-pool.ts'
import { SCORING, scoreValue, type ValueScore } from './value-score.ts'

const PREVIEWED = 3
/** Filters are applied to one pool for all buyers: a new filter costs no call. */
const KEEPING = { ttl: 10 * 60_000, staleIfError: 60 * 60_000 }

/** The store's discounts in the order of what they are worth. */
export function deals(store: Gamestore): HandlerWithPreview<'gamestore/deals'> {
  return {
    async run({ min_discount, min_review, count }, { keep, now }) {
      const kept = await keep('gamestore/deals/pool/2', KEEPING, isDealPool, (signal) =>
        readDealPool(store, signal),
      )
      const matching = kept.value.deals.filter(
        ({ discountPercent, percentPositive }) =>
          discountPercent >= min_discount && percentPositive >= min_review,
      )
      const ranked = matching.map((deal) => ({ deal, value: valueOf(deal) })).toSorted(byValue)
      const items = ranked.slice(0, count).map(({ deal, value }, place) => row(place + 1, deal, value))
      const stale = kept.stale ? [staleWarning(kept.at, now(), store.source.name)] : []
      return {
        source: [store.source],
        fetchedAt: kept.at,
        warnings: [...poolWarnings(kept.value, store), ...stale],
        body: {
          country: COUNTRY,
          currency: store.currency(COUNTRY).code,
          filters: { min_discount, min_review, count },
          pool_size: kept.value.deals.length,
          pool_read: kept.value.read,
          total_on_sale: kept.value.total ?? null,
          matched: matching.length,
          count: items.length,
          scoring: SCORING,
          items,
        },
      }
    },
    preview,
  }
}

function valueOf({ discountPercent, percentPositive, reviewCount, savings }: Deal): ValueScore {
  const positiveReviews = Math.round((percentPositive * reviewCount) / 100)
  return scoreValue({ discountPercent, positiveReviews, reviews: reviewCount, savedUsd: savings.amount })
}

interface Valued {
  readonly deal: Deal
  readonly value: ValueScore
}

/** Sorts by the displayed score, so that the order is understandable; then by number of reviews, then by age. */
function byValue(one: Valued, other: Valued): number {
  return (
    other.value.score - one.value.score ||
    other.deal.reviewCount - one.deal.reviewCount ||
    one.deal.appid - other.deal.appid
  )
}

function row(rank: number, deal: Deal, { score, components }: ValueScore): JsonObject {
  return {
    rank,
    appid: deal.appid,
    name: deal.name,
    url: `https://store.steampowered.com/app/${deal.appid}/`,
    value_score: score,
    components,
    discount_percent: deal.discountPercent,
    price: deal.price,
    original_price: deal.originalPrice,
    savings: deal.savings,
    review_percent_positive: deal.percentPositive,
    review_count: deal.reviewCount,
    review_score_desc: deal.reviewLabel ?? null,
    discount_ends_at: deal.endsAt ?? null,
  }
}

function poolWarnings({ origin, deals, missingPages }: DealPool, { source }: Gamestore): Warning[] {
  if (origin === 'store_query' && missingPages === 0) return []
  if (origin === 'store_query') {
    const gap = `Pages of games on sale that could not be read now: ${missingPages}`
    return [{ code: 'pool_partial', message: gap, source: source.name }]
  }
  const message = `The full list of deals cannot be read now: ranked among ${deals.length} that the store shows`
  return [{ code: 'pool_fallback', message, source: source.name }]
}

/** The first three, without what their scores are made of. */
function preview(body: JsonObject): JsonObject {
  const { items = [] } = body
  const first = Array.isArray(items) ? items.filter(isJsonObject).slice(0, PREVIEWED) : []
  return {
    ...body,
    count: first.length,
    items: first.map(({ components: _components, ...item }) => item),
  }
}
