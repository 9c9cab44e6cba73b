/** How the service stands, as `/status.json` says it and `/status` shows it: every figure of the page is one of these. */
export interface StatusModel {
  readonly service: string
  readonly version: string
  readonly revision: string
  readonly sandbox: boolean
  /**
   * - `operational`: whatever is set up answers
   * - `degraded`: a route that is set up fails
   * - `down`: nothing can be sold now
   */
  readonly status: 'operational' | 'degraded' | 'down'
  /** Why it is not operational, one sentence each. */
  readonly reasons: readonly string[]
  readonly checked_at: string
  /** The days that the figures are of, oldest first, today among them. */
  readonly days: readonly DayFigures[]
  /** Of these days, all routes and tools together. */
  readonly funnel: Funnel
  readonly routes: readonly RouteStanding[]
  /** Paid routes that cannot be served now. */
  readonly unavailable: readonly { readonly path: string; readonly reason: string }[]
  readonly sources: readonly SourceStanding[]
  /** Networks on which this process has settled payments with signers of its own. */
  readonly networks: readonly NetworkStanding[]
  /** The last catalog that was to take the place of this one, if it was refused. */
  readonly refused_reload: RefusedReload | null
}

/** What became of requests to what is sold; `engine/usage/counts.ts` says when each is counted. */
export interface Funnel {
  readonly unpaid: number
  readonly presented: number
  readonly verified: number
  readonly settled: number
  readonly sent: number
  readonly uncharged: number
}

export interface DayFigures extends Funnel {
  readonly date: string
  /** Answers with status 200. */
  readonly paid_answers: number
  readonly free_answers: number
}

export type Availability = 'available' | 'failing' | 'not_configured'

/** Numbers of calls are left out: with the price they would tell what each route earns. `ratecard stats` has them. */
export interface RouteStanding {
  readonly path: string
  readonly kind: 'paid' | 'sample' | 'free'
  readonly availability: Availability
  /** Answers with status 200 among these and those of 500 and above, 0 to 1; null: none of either in these days. */
  readonly success_rate: number | null
  /** Null: no answer in these days. */
  readonly p50_ms: number | null
  readonly p95_ms: number | null
  readonly last_success: string | null
}

export interface SourceStanding {
  readonly name: string
  readonly title: string
  readonly asked: number
  readonly failed: number
  readonly drifted: number
  readonly skipped: number
  readonly last_drift?: { readonly at: string; readonly where: string }
}

export interface NetworkStanding {
  /** CAIP-2. */
  readonly network: string
  readonly name: string
  /** `closed`: nothing is settled now, and `reason` says why. */
  readonly status: 'open' | 'closed'
  readonly reason: string | null
  /** Coin that gas is paid in; the amounts are in its units. */
  readonly coin: string
  readonly signers: readonly { readonly address: string; readonly balance: string }[]
  /** What reverted transactions have cost over all processes. */
  readonly gas_lost_last_hour: string
  /** Transactions in no block yet. */
  readonly unmined: number
}

export interface RefusedReload {
  readonly refused_at: string
  /** The revision that serves on. */
  readonly kept: string
  /** Places in the catalog; the operator's log has the words, which could quote what should not be public. */
  readonly errors: readonly { readonly code: string; readonly line?: number; readonly column?: number }[]
}
