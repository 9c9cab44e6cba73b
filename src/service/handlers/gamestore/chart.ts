import { Failure, type Warning } from 'ratecard/handler'
import { Fallbacks } from '../../sources/attempt.ts'
import type { Gamestore, Listing } from '../../sources/gamestore.ts'

/** A ranking with what is known of its titles. */
export interface Chart {
  readonly ranking: 'steam_store_topsellers' | 'steam_store_featured' | 'steam_weekly_top_sellers'
  readonly listings: readonly Listing[]
  readonly warnings: readonly Warning[]
}

/** More than are shown, for some will turn out not to be sold in the country. */
const CONSIDERED = 50

/**
 * The best chart that can be had now: the live ranking, else the front page, else last week's official chart. Throws
 * the failure of the first when none can be had.
 */
export async function readChart(store: Gamestore, country: string, signal: AbortSignal): Promise<Chart> {
  const fallbacks = new Fallbacks()
  async function withDetails(listings: readonly Listing[]): Promise<readonly Listing[] | undefined> {
    const appids = listings.slice(0, CONSIDERED).map(({ appid }) => appid)
    const titles = await fallbacks.attempt(async () => {
      const found = await store.items(appids, country, signal)
      if (found.size === 0)
        throw new Failure('source_error', 'The game store has no data for its top sellers')
      return found
    })
    return titles && listings.map(({ appid, title }) => ({ appid, title: titles.get(appid) ?? title }))
  }
  const warn = (code: string, message: string): Warning => ({ code, message, source: store.source.name })

  const live = await fallbacks.attempt(() => store.search(country, 'all', CONSIDERED, signal))
  const detailed = live && (await withDetails(live))
  if (detailed) return { ranking: 'steam_store_topsellers', listings: detailed, warnings: [] }

  const featured = await fallbacks.attempt(() => store.featured(country, 'top_sellers', signal))
  if (featured) {
    // With a live ranking in hand it was the details that failed: they are not asked for again.
    const better = live ? undefined : await withDetails(featured)
    const fallback = warn('ranking_fallback', 'No live ranking now: the few top sellers of the front page')
    const poor = warn('details_missing', 'No details now: type, reviews, release date, platforms are null')
    const warnings = better ? [fallback] : [fallback, poor]
    return { ranking: 'steam_store_featured', listings: better ?? featured, warnings }
  }

  const weekly = await fallbacks.attempt(() => store.weekly(country, CONSIDERED, signal))
  if (weekly) {
    const fallback = warn('ranking_fallback', 'No live ranking now: the official chart of last week')
    return { ranking: 'steam_weekly_top_sellers', listings: weekly, warnings: [fallback] }
  }
  throw fallbacks.failure
}
