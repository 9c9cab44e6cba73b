/** Upper bounds of the classes in milliseconds; the last class has none. */
export const BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000]

/** How many answers took how long: one number for each class. */
export type Latency = readonly number[]

/** The class that milliseconds fall into. */
export function classOf(ms: number): number {
  const found = BOUNDS.findIndex((bound) => ms <= bound)
  return found === -1 ? BOUNDS.length : found
}

export function answersIn(latency: Latency): number {
  return latency.reduce((sum, count) => sum + count, 0)
}

/**
 * The milliseconds within which this share of the answers came, 0 to 1: exact to its class, evenly spread inside it.
 * Undefined when there was none.
 */
export function quantile(latency: Latency, share: number): number | undefined {
  const rank = answersIn(latency) * share
  let below = 0
  for (const [place, count] of latency.entries()) {
    if (count > 0 && below + count >= rank) {
      const lower = BOUNDS[place - 1] ?? 0
      // Above the last bound nothing is known but the bound.
      const upper = BOUNDS[place] ?? lower
      return Math.max(1, Math.round(lower + ((rank - below) / count) * (upper - lower)))
    }
    below += count
  }
  return undefined
}
