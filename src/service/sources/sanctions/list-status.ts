import type { ListCache } from './list-cache.ts'

/** How a list stands, for the operator. */
export interface ListStatus {
  readonly id: string
  readonly publisher: string
  /** There is an address for it, or a file of it. */
  readonly configured: boolean
  /** The variable that holds its address. */
  readonly variable: string
  readonly published_at: string | null
  readonly fetched_at: string | null
  readonly age_seconds: number | null
  readonly max_age_seconds: number
  readonly entries: number | null
  readonly sha256: string | null
  /** Why answers do not rely on it, phrased to follow its name; null when they do, or it is not configured. */
  readonly problem: string | null
}

export function listStatus({ terms, facts, isConfigured, problem }: ListCache, now: Date): ListStatus {
  return {
    id: terms.id,
    publisher: terms.publisher,
    configured: isConfigured,
    variable: terms.variable,
    published_at: facts?.publishedAt ?? null,
    fetched_at: facts === undefined ? null : new Date(facts.fetchedAt).toISOString(),
    age_seconds:
      facts === undefined ? null : Math.max(0, Math.round((now.getTime() - facts.fetchedAt) / 1000)),
    max_age_seconds: terms.maxAge / 1000,
    entries: facts?.entries ?? null,
    sha256: facts?.sha256 ?? null,
    problem: isConfigured ? (problem ?? null) : null,
  }
}
