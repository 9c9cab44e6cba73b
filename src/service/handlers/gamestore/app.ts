import { staleWarning, type Failure, type JsonObject, type Warning } from 'ratecard/handler'
import type { Gamestore } from '../../sources/gamestore.ts'
import type { Details } from '../../sources/gamestore/details.ts'
import type { ReviewTotals } from '../../sources/gamestore/store-figures.ts'
import type { Estimate, SteamSpy } from '../../sources/steamspy.ts'
import { attempt, type Attempt } from '../../sources/attempt.ts'
import type { Handler } from '../catalog.ts'
import { readAppPage } from './app-page.ts'
import { ownersByReviews, ownersBySteamSpy, ownersRow } from './owners.ts'
import { readEstimate } from './steamspy-cache.ts'

const COUNTRY = 'US'
/** An answer with gaps is kept no longer: they may be filled. */
const WITH_GAPS = 30_000

/** All that is known of one app now. Only its page must be there; each other part may be missing, and a warning says so. */
export function app(store: Gamestore, steamSpy: SteamSpy): Handler<'gamestore/app'> {
  return async ({ appid }, { signal, now, keep }) => {
    const [{ details, warnings }, players, reviews, spyAttempt] = await Promise.all([
      readAppPage(store, appid, COUNTRY, signal),
      attempt(store.players(appid, signal)),
      attempt(store.reviews(appid, signal)),
      attempt(readEstimate(steamSpy, appid, keep)),
    ])
    const gaps = [
      ...gapOf(players, store.source.name, ['live_players']),
      ...gapOf(reviews, store.source.name, ['reviews']),
      ...gapOf(spyAttempt, steamSpy.source.name, [
        'owners_estimate',
        'playtime',
        'peak_ccu_yesterday',
        'tags',
      ]),
    ]
    const totals = valueOf(reviews)
    const current = valueOf(players)
    const kept = valueOf(spyAttempt)
    const estimate = kept?.value.estimate ?? null
    const owners = [
      estimate && ownersBySteamSpy(estimate.owners),
      totals && ownersByReviews(factsOf(details, totals)),
    ]
    const stale = kept?.stale ? [staleWarning(kept.at, now(), steamSpy.source.name)] : []
    return {
      source: [store.source, ...(estimate ? [steamSpy.source] : [])],
      warnings: [...warnings, ...gaps.map(gapWarning), ...stale],
      ...(gaps.length === 0 ? {} : { freshFor: WITH_GAPS }),
      body: {
        appid,
        name: details.name,
        type: details.type,
        url: `https://store.steampowered.com/app/${appid}/`,
        details: detailsRow(details),
        live_players: current === undefined ? null : { current, as_of: now().toISOString() },
        reviews: totals ? reviewsRow(totals) : null,
        owners_estimate: ownersRow(owners.flatMap((each) => each ?? [])),
        playtime: estimate && playtimeRow(estimate),
        peak_ccu_yesterday: estimate?.peakYesterday ?? null,
        tags: estimate && estimate.tags,
        gaps: gaps.map(gapRow),
      },
    }
  }
}

/** Fields that are null, or come from a poorer source, because one source could not be read. */
interface Gap {
  readonly source: string
  readonly fields: readonly string[]
  readonly failure: Failure
}

function gapOf(part: Attempt<unknown>, source: string, fields: readonly string[]): Gap[] {
  return part.kind === 'failed' ? [{ source, fields, failure: part.failure }] : []
}

function valueOf<Value>(part: Attempt<Value>): Value | undefined {
  return part.kind === 'done' ? part.value : undefined
}

function gapWarning({ source, fields, failure: { code, detail } }: Gap): Warning {
  const message = `${detail}: without it ${fields.join(', ')}`
  return { code: code === 'source_limited' ? code : 'upstream_unavailable', message, source }
}

function gapRow({ source, fields, failure: { code, retryAfter } }: Gap): JsonObject {
  return { fields, reason: code, source, retry_after_seconds: retryAfter ?? null }
}

function playtimeRow({ averageForever = null, medianForever = null }: Estimate): JsonObject | null {
  if (averageForever === null && medianForever === null) return null
  return { average_forever_minutes: averageForever, median_forever_minutes: medianForever }
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
