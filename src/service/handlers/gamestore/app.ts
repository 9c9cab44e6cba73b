import { staleWarning, type JsonObject, type Warning } from '../../../engine/index.ts'
import type { Gamestore } from '../../sources/gamestore.ts'
import type { Details } from '../../sources/gamestore/details.ts'
import type { ReviewTotals } from '../../sources/gamestore/figures.ts'
import type { SteamSpy } from '../../sources/steamspy.ts'
import { attempt } from '../attempt.ts'
import type { Handler } from '../catalog.ts'
import { readAppPage } from './app-page.ts'
import { ownersByReviews, ownersBySteamSpy, ownersRow } from './owners.ts'
import { readSpied } from './spied.ts'

const COUNTRY = 'US'

/** All that is known of one app now. Only its page must be there; each other part may be missing, and a warning says so. */
export function app(store: Gamestore, steamSpy: SteamSpy): Handler<'gamestore/app'> {
  return async ({ appid }, { signal, now, keep }) => {
    const [{ details, warnings }, players, reviews, spied] = await Promise.all([
      readAppPage(store, appid, COUNTRY, signal),
      part(store.source.name, 'live players', store.players(appid, signal)),
      part(store.source.name, 'reviews', store.reviews(appid, signal)),
      part(steamSpy.source.name, 'playtime, peak, tags and sampled owners', readSpied(steamSpy, appid, keep)),
    ])
    const estimate = spied.value?.value.estimate ?? null
    const owners = [
      estimate && ownersBySteamSpy(estimate.owners),
      reviews.value && ownersByReviews(factsOf(details, reviews.value)),
    ]
    const stale = spied.value?.stale ? [staleWarning(spied.value.at, now(), steamSpy.source.name)] : []
    return {
      source: [store.source, ...(estimate ? [steamSpy.source] : [])],
      warnings: [...warnings, ...[players, reviews, spied].flatMap(({ warning }) => warning ?? []), ...stale],
      body: {
        appid,
        name: details.name,
        type: details.type,
        url: `https://store.steampowered.com/app/${appid}/`,
        details: detailsRow(details),
        live_players:
          players.value === undefined ? null : { current: players.value, as_of: now().toISOString() },
        reviews: reviews.value ? reviewsRow(reviews.value) : null,
        owners_estimate: ownersRow(owners.flatMap((each) => each ?? [])),
        playtime: estimate && {
          average_forever_minutes: estimate.averageForever,
          median_forever_minutes: estimate.medianForever,
        },
        peak_ccu_yesterday: estimate && estimate.peakYesterday,
        tags: estimate && estimate.tags,
      },
    }
  }
}

interface Part<Value> {
  readonly value?: Value
  readonly warning?: Warning
}

async function part<Value>(source: string, what: string, work: Promise<Value>): Promise<Part<Value>> {
  const made = await attempt(work)
  if (made.kind === 'done') return { value: made.value }
  return { warning: { code: 'upstream_unavailable', message: `No ${what} now`, source } }
}

function factsOf(details: Details, totals: ReviewTotals): Parameters<typeof ownersByReviews>[0] {
  return {
    reviews: totals.total_reviews,
    year: details.release?.comingSoon ? null : (details.release?.year ?? null),
    isFree: details.isFree,
  }
}

function detailsRow(details: Details): JsonObject {
  const { release } = details
  return {
    short_description: details.shortDescription,
    developers: details.developers,
    publishers: details.publishers,
    genres: details.genres,
    categories: details.categories,
    platforms: details.platforms,
    release_date: release && { coming_soon: release.comingSoon, date: release.date, text: release.text },
    required_age: details.requiredAge,
    is_free: details.isFree,
    price: details.price,
    original_price: details.originalPrice,
    discount_percent: details.discountPercent,
    metacritic_score: details.metacriticScore,
    achievements: details.achievements,
    languages: details.languages,
    website: details.website,
    header_image: details.headerImage,
  }
}

function reviewsRow(totals: ReviewTotals): JsonObject {
  const { total_positive: positive, total_negative: negative, total_reviews: total } = totals
  return {
    score: totals.review_score,
    score_desc: totals.review_score_desc,
    total,
    positive,
    negative,
    percent_positive: total === 0 ? null : Number(((100 * positive) / total).toFixed(1)),
    language: 'all',
    purchase_type: 'all',
  }
}
