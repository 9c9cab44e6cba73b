import { type Stages, type Counts, add, NOTHING } from './counts.ts'
import { answersIn, quantile } from './latency.ts'
import type { Days } from './usage-store.ts'

/** What one name has counted over some days, for its operator. */
export interface FigureRow extends Stages {
  readonly name: string
  /** Answers with a status of 200 to 299; of a name with a status, such as `passthrough 404`, those with that status. */
  readonly answers: number
  /** Median time of the answers in milliseconds; null when there was none. */
  readonly p50_ms: number | null
  readonly p95_ms: number | null
  readonly last_success: string | null
}

/** A row for everything that was counted, in alphabetical order. */
export function figureRows(days: Days): FigureRow[] {
  const totals = new Map<string, Counts>()
  for (const { counts } of days)
    for (const [name, each] of counts) totals.set(name, add(totals.get(name) ?? NOTHING, each))
  return [...totals].map(rowOf).sort((one, other) => (one.name < other.name ? -1 : 1))
}

function rowOf([name, { stages, latency, lastSuccess }]: [string, Counts]): FigureRow {
  return {
    name,
    ...stages,
    answers: answersIn(latency),
    p50_ms: quantile(latency, 0.5) ?? null,
    p95_ms: quantile(latency, 0.95) ?? null,
    last_success: lastSuccess === 0 ? null : new Date(lastSuccess).toISOString(),
  }
}
