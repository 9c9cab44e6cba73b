/** What one category is measured by. */
export interface Attention {
  /** Share of all sampled viewers, 0 to 100. */
  readonly sharePercent: number
  /** Against earlier samples, in percent; null when there are none. */
  readonly momentumPercent: number | null
  /** Viewers of the largest channel over all of the category, 0 to 1. */
  readonly topShare: number
}

/** Each from 0 to 1. */
export type Components = { readonly share: number; readonly momentum: number; readonly breadth: number }

export interface HypeScore {
  /** 0 to 100, one decimal. */
  readonly score: number
  /** Four decimals. */
  readonly components: Components
}

/** Changes whenever a score would: buyers who keep scores can tell. */
export const SCORING = {
  formula: '100*(0.50*log_share+0.30*momentum+0.20*breadth)',
  version: '1',
} as const

const WEIGHTS: Components = { share: 0.5, momentum: 0.3, breadth: 0.2 }
/** Without an earlier sample a category counts as neither rising nor falling. */
const UNKNOWN = 0.5

/**
 * How much a category is talked of: its share of the viewers on a scale where the first percents count most, its momentum
 * (half when it is steady, all when it has doubled, nothing when it is gone), and how little of it is one single channel.
 *
 * @example
 * scoreHype({ sharePercent: 14.7, momentumPercent: 12.5, topShare: 0.248 })
 * // { score: 61.8, components: { share: 0.5967, momentum: 0.5625, breadth: 0.752 } }
 */
export function scoreHype({ sharePercent, momentumPercent, topShare }: Attention): HypeScore {
  const share = Math.log(1 + sharePercent) / Math.log(101)
  const momentum =
    momentumPercent === null ? UNKNOWN : (Math.max(-1, Math.min(1, momentumPercent / 100)) + 1) / 2
  const breadth = 1 - topShare
  const sum = WEIGHTS.share * share + WEIGHTS.momentum * momentum + WEIGHTS.breadth * breadth
  return {
    score: round(100 * sum, 1),
    components: { share: round(share, 4), momentum: round(momentum, 4), breadth: round(breadth, 4) },
  }
}

export function round(value: number, decimals: number): number {
  return Number(value.toFixed(decimals))
}
