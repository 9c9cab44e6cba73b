import { answersIn, noLatency, type Latency } from './latency.ts'

/**
 * What is counted of a route.
 *
 * - `unpaid`: requests without a payment, answered 402
 * - `presented`: requests with a payment, good or not
 * - `verified`: payments that passed every check, so that they were worked for or settled
 * - `settled`: payments that were charged
 * - `sent`: of those settled, payments whose answers are known to have arrived
 * - `uncharged`: of those verified, payments whose work or settlement failed: nothing was charged
 * - `failed`: answers of 500 and above, to whomever
 *
 * A payment that was not charged may come again and is verified again, so that
 * `verified` = `settled` + `uncharged` + those under way.
 */
export const STAGES = ['unpaid', 'presented', 'verified', 'settled', 'sent', 'uncharged', 'failed'] as const

export type Stage = (typeof STAGES)[number]

export type Stages = Readonly<Record<Stage, number>>

/** What has become of the requests to one route. */
export interface Counts {
  readonly stages: Stages
  /** Of paid and free answers with status 200. */
  readonly latency: Latency
  /** Milliseconds since the epoch; 0: never. */
  readonly lastSuccess: number
  readonly lastFailure: number
  /** Failures since the last success. */
  readonly failedInARow: number
}

export function noStages(): Record<Stage, number> {
  return { unpaid: 0, presented: 0, verified: 0, settled: 0, sent: 0, uncharged: 0, failed: 0 }
}

export const NOTHING: Counts = {
  stages: noStages(),
  latency: noLatency(),
  lastSuccess: 0,
  lastFailure: 0,
  failedInARow: 0,
}

export function isNothing({ stages, latency }: Counts): boolean {
  return STAGES.every((stage) => stages[stage] === 0) && answersIn(latency) === 0
}

/** Both together, whichever process or day they are of. */
export function add(one: Counts, other: Counts): Counts {
  const stages = noStages()
  for (const stage of STAGES) stages[stage] = one.stages[stage] + other.stages[stage]
  const lastSuccess = Math.max(one.lastSuccess, other.lastSuccess)
  // A success elsewhere ends a row of failures.
  const rowOf = ({ lastFailure, failedInARow }: Counts): number =>
    lastFailure > lastSuccess ? failedInARow : 0
  return {
    stages,
    latency: one.latency.map((count, place) => count + (other.latency[place] ?? 0)),
    lastSuccess,
    lastFailure: Math.max(one.lastFailure, other.lastFailure),
    failedInARow: Math.max(rowOf(one), rowOf(other)),
  }
}
