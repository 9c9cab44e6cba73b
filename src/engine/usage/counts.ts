import { type Latency, BOUNDS, classOf, answersIn } from './latency.ts'

/**
 * What is counted of a route.
 *
 * - `unpaid`: requests without a payment, answered 402
 * - `presented`: requests with a payment, good or not
 * - `verified`: payments that passed every check, so that they were worked for or settled
 * - `settled`: payments that were charged
 * - `sent`: of those settled, payments whose answers are known to have arrived
 * - `uncharged`: of those verified, payments whose work or settlement failed: nothing was charged
 * - `keyed`: requests of customers with an API key, or with a credential that the upstream has accepted, which are not
 *   paid for
 * - `failed`: answers of 500 and above, to any caller
 *
 * A payment that was not charged may come again and is verified again, so that
 * `verified` = `settled` + `uncharged` + those under way.
 */
const STAGES = ['unpaid', 'presented', 'verified', 'settled', 'sent', 'uncharged', 'keyed', 'failed'] as const

type Stage = (typeof STAGES)[number]

export type Stages = Readonly<Record<Stage, number>>

/** What has become of the requests to one route. */
export interface Counts {
  readonly stages: Stages
  /** Latency of paid and free answers with status 200. */
  readonly latency: Latency
  /** Milliseconds since the epoch; 0: never. */
  readonly lastSuccess: number
  readonly lastFailure: number
  /** Failures since the last success. */
  readonly failedInARow: number
}

function nothing() {
  return {
    stages: { unpaid: 0, presented: 0, verified: 0, settled: 0, sent: 0, uncharged: 0, keyed: 0, failed: 0 },
    latency: Array.from({ length: BOUNDS.length + 1 }, () => 0),
    lastSuccess: 0,
    lastFailure: 0,
    failedInARow: 0,
  }
}

export const NOTHING: Counts = nothing()

/** The sum of two counts, of whichever process and day. */
export function add(one: Counts, other: Counts): Counts {
  const { stages } = nothing()
  for (const stage of STAGES) stages[stage] = countIn(one, stage) + countIn(other, stage)
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

/** Counts that an earlier version has stored lack the stages that are new since. */
function countIn({ stages }: { readonly stages: Partial<Stages> }, stage: Stage): number {
  return stages[stage] ?? 0
}

/**
 * Counts what becomes of the requests to one route of this process. It is held by the route itself: an unpaid request
 * costs one addition, no lookup and no look at the clock.
 */
export class RouteCounters {
  #counts = nothing()

  count(stage: Stage): void {
    this.#counts.stages[stage] += 1
  }

  /** `ms`: how long the answer took; `now`: milliseconds since the epoch. */
  succeed(ms: number, now: number): void {
    const { latency } = this.#counts
    const place = classOf(ms)
    latency[place] = (latency[place] ?? 0) + 1
    this.#counts.lastSuccess = now
    this.#counts.failedInARow = 0
  }

  fail(now: number): void {
    this.#counts.stages.failed += 1
    this.#counts.lastFailure = now
    this.#counts.failedInARow += 1
  }

  /** What was counted since the last time it was taken; undefined: nothing. */
  take(): Counts | undefined {
    const taken = this.#counts
    if (answersIn(taken.latency) === 0 && STAGES.every((stage) => taken.stages[stage] === 0)) return undefined
    const { stages, latency } = nothing()
    this.#counts = { ...taken, stages, latency }
    return taken
  }
}

/**
 * Counts the answer with the time it took, or a failure when a waiting client got none because of this service. `gone`
 * is aborted when the client has gone away. Without a reply, another
 * part of the service answers and counts.
 */
export async function withMetrics<T extends { readonly reply?: { readonly status: number } | undefined }>(
  now: () => number,
  { counters, gone }: { readonly counters: RouteCounters; readonly gone: AbortSignal },
  answer: () => Promise<T>,
): Promise<T> {
  const began = now()
  try {
    const answered = await answer()
    const { status = 0 } = answered.reply ?? {}
    if (status >= 200 && status < 300) counters.succeed(now() - began, now())
    else if (status >= 500 && !gone.aborted) counters.fail(now())
    return answered
  } catch (fault) {
    counters.fail(now())
    throw fault
  }
}

/** What is sold through a route or a tool, by the id of its operation. */
export function soldName(operation: string): string {
  return `sold ${operation}`
}

/** What is served free of charge, by its path. */
export function freeName(path: string): string {
  return `free ${path}`
}

const PASSED = 'passthrough '

/** What has passed to the site behind the catalog, by the status of the answer. */
export function passedName(status: number): string {
  return PASSED + status
}

/** The status in such a name; undefined for other names. */
export function passedStatus(name: string): string | undefined {
  return name.startsWith(PASSED) ? name.slice(PASSED.length) : undefined
}

export function isSold(name: string): boolean {
  return name.startsWith('sold ')
}
