import {
  isJsonObject,
  staleWarning,
  type Context,
  type JsonObject,
  type KeptValue,
  type Warning,
} from 'ratecard/handler'
import type { Twitch } from '../../sources/twitch.ts'
import type { HandlerWithPreview } from '../catalog.ts'
import { extend, isHypeHistory, momentumOf, type HypeHistory } from './hype-history.ts'
import { isHypePool, readHypePool, type HypePool, type Sampled } from './hype-pool.ts'
import { round, scoreHype, SCORING, type HypeScore } from './hype-score.ts'

const PREVIEWED = 3
const MINUTE = 60_000
/** Any number of categories is taken from one sample: another limit costs no call. */
const POOL = { ttl: 2 * MINUTE, staleIfError: 30 * MINUTE }
/** A snapshot every half hour at most, and none older than a day to go on from. */
const HISTORY = { ttl: 30 * MINUTE, staleIfError: 24 * 60 * MINUTE }
/** Percent; within it viewers come and go. */
const STEADY = 5

/** What people watch now, and what is rising. */
export function hype(twitch: Twitch): HandlerWithPreview<'streaming/hype'> {
  const sample = async ({ keep }: Context): Promise<KeptValue<HypePool>> =>
    keep('streaming/hype/pool/1', POOL, isHypePool, (signal) => readHypePool(twitch, signal))
  /** With one more snapshot whenever the last one is old enough. */
  const recall = async ({ keep }: Context, pool: () => Promise<KeptValue<HypePool>>) =>
    keep('streaming/hype/history/1', HISTORY, isHypeHistory, async (_, before = []) => {
      const { value, at } = await pool()
      return extend(before, value, at)
    })
  return {
    /** Trends exist before the first sale. */
    async background(context) {
      await recall(context, () => sample(context))
    },
    async run({ limit }, context) {
      const { now } = context
      const pool = await sample(context)
      const history = await recall(context, async () => pool)
      const ranked = pool.value.categories
        .map((category) => judge(category, pool.value, history.value, pool.at))
        .toSorted(byScore)
      const items = ranked.slice(0, limit).map((judged, place) => row(place + 1, judged))
      const stale = pool.stale ? [staleWarning(pool.at, now(), twitch.source.name)] : []
      return {
        source: [twitch.source],
        fetchedAt: pool.at,
        warnings: [...poolWarnings(pool.value, twitch), ...stale],
        body: {
          count: items.length,
          categories_sampled: pool.value.categories.length,
          total_viewers_sampled: pool.value.viewers,
          scoring: SCORING,
          items,
        },
      }
    },
    preview,
  }
}

interface Judged extends Sampled {
  readonly sharePercent: number
  readonly momentumPercent: number | null
  readonly hype: HypeScore
}

function judge(category: Sampled, pool: HypePool, history: HypeHistory, at: Date): Judged {
  const { viewers, top } = category
  const sharePercent = pool.viewers === 0 ? 0 : (100 * viewers) / pool.viewers
  const momentumPercent = momentumOf(history, category, at)
  const topShare = viewers === 0 ? 1 : top.viewers / viewers
  return {
    ...category,
    sharePercent,
    momentumPercent,
    hype: scoreHype({ sharePercent, momentumPercent, topShare }),
  }
}

/** Sorts by the displayed score, so that the order is understandable; then by viewers, then by age. */
function byScore(one: Judged, other: Judged): number {
  return other.hype.score - one.hype.score || other.viewers - one.viewers || Number(one.id) - Number(other.id)
}

function row(
  rank: number,
  { hype: { score, components }, momentumPercent, ...category }: Judged,
): JsonObject {
  const { viewers, channels, top } = category
  return {
    rank,
    category_id: category.id,
    name: category.name,
    hype_score: score,
    components,
    viewers,
    viewers_is_lower_bound: !category.complete,
    live_channels_sampled: channels,
    avg_viewers_per_channel: Math.round(viewers / channels),
    viewer_share_percent: round(category.sharePercent, 2),
    momentum_percent: momentumPercent === null ? null : round(momentumPercent, 1),
    trend: trendOf(momentumPercent),
    top_channel: { login: top.login, viewers: top.viewers, language: top.language ?? null },
    igdb_id: category.igdbId ?? null,
    box_art_url: boxArt(category.boxArt),
  }
}

function trendOf(momentum: number | null): 'rising' | 'falling' | 'steady' | 'unknown' {
  if (momentum === null) return 'unknown'
  if (Math.abs(momentum) <= STEADY) return 'steady'
  return momentum > 0 ? 'rising' : 'falling'
}

function boxArt(format: string | null | undefined): string | null {
  return format?.startsWith('https://') ? format.replace('{width}', '285').replace('{height}', '380') : null
}

function poolWarnings({ origin, partial }: HypePool, { source }: Twitch): Warning[] {
  const warn = (code: string, message: string): Warning => ({ code, message, source: source.name })
  const gathered = 'The list of categories cannot be read now: gathered from the largest channels'
  const poor = `Categories whose channels could be read in part only: ${partial}`
  return [
    ...(origin === 'streams' ? [warn('ranking_fallback', gathered)] : []),
    ...(partial > 0 ? [warn('sample_partial', poor)] : []),
  ]
}

/** The first three, with how many watch them and nothing more. */
function preview(body: JsonObject): JsonObject {
  const { items = [] } = body
  const first = Array.isArray(items) ? items.filter(isJsonObject).slice(0, PREVIEWED) : []
  return {
    count: first.length,
    items: first.map(({ rank = null, name = null, viewers = null }) => ({ rank, name, viewers })),
  }
}
