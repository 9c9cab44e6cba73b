import { compileShape } from '../../sources/answer-shape.ts'
import type { HypePool } from './hype-pool.ts'

/** How many watched each category at one moment. */
export type Snapshot = {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly viewers: Readonly<Record<string, number>>
}
/** The oldest first. */
export type HypeHistory = readonly Snapshot[]

const MOST_SNAPSHOTS = 48
/** Weight of the newer of two snapshots. */
const SMOOTHING = 0.25

export const isHypeHistory = compileShape<Snapshot[]>({
  type: 'array',
  items: {
    type: 'object',
    required: ['at', 'viewers'],
    properties: {
      at: { type: 'integer' },
      viewers: { type: 'object', required: [], additionalProperties: { type: 'integer' } },
    },
  },
})

/** The history with one more snapshot; without, when the pool is no newer than the last one. */
export function extend(history: readonly Snapshot[], { categories }: HypePool, at: Date): Snapshot[] {
  if ((history.at(-1)?.at ?? 0) >= at.getTime()) return [...history]
  const viewers = Object.fromEntries(categories.map((category) => [category.id, category.viewers]))
  return [...history, { at: at.getTime(), viewers }].slice(-MOST_SNAPSHOTS)
}

/**
 * How far a category's viewers are above or below their moving average (exponential, over the snapshots before `at`), in
 * percent; null when it was not seen before.
 */
export function momentumOf(
  history: HypeHistory,
  { id, viewers }: { readonly id: string; readonly viewers: number },
  at: Date,
): number | null {
  const before = history.flatMap((snapshot) =>
    snapshot.at < at.getTime() ? (snapshot.viewers[id] ?? []) : [],
  )
  const [first, ...later] = before
  if (first === undefined) return null
  const average = later.reduce((mean, each) => SMOOTHING * each + (1 - SMOOTHING) * mean, first)
  return average === 0 ? null : (100 * (viewers - average)) / average
}
