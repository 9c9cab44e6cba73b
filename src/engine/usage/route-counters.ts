import type { PaymentRecord, State } from '../ledger/payment-record.ts'
import type { Change, Ledger } from '../ledger/ledger.ts'

/** Upper bounds of the classes in milliseconds; the last class has none. */
const BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000]

/** How many answers took how long: one number for each class. */
export type Latency = readonly number[]

export function noLatency(): number[] {
  return Array.from({ length: BOUNDS.length + 1 }, () => 0)
}

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

/**
 * What is counted of a route.
 *
 * - `unpaid`: requests without a payment, answered 402
 * - `presented`: requests with a payment, good or not
 * - `verified`: payments that passed every check, so that they were worked for or settled
 * - `settled`: payments that were charged
 * - `sent`: of those settled, payments whose answers are known to have arrived
 * - `uncharged`: of those verified, payments whose work or settlement failed: nothing was charged
 * - `failed`: answers of 500 and above, to any caller
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

/**
 * Counts what becomes of the requests to one route of this process. It is held by the route itself: an unpaid request
 * costs one addition, no lookup and no look at the clock.
 */
export class RouteCounters {
  #stages = noStages()
  #latency = noLatency()
  #lastSuccess = 0
  #lastFailure = 0
  #failedInARow = 0

  count(stage: Stage): void {
    this.#stages[stage] += 1
  }

  /** `ms`: how long the answer took; `now`: milliseconds since the epoch. */
  succeed(ms: number, now: number): void {
    const place = classOf(ms)
    this.#latency[place] = (this.#latency[place] ?? 0) + 1
    this.#lastSuccess = now
    this.#failedInARow = 0
  }

  fail(now: number): void {
    this.#stages.failed += 1
    this.#lastFailure = now
    this.#failedInARow += 1
  }

  /** What was counted since the last time it was taken; undefined: nothing. */
  take(): Counts | undefined {
    const taken = {
      stages: this.#stages,
      latency: this.#latency,
      lastSuccess: this.#lastSuccess,
      lastFailure: this.#lastFailure,
      failedInARow: this.#failedInARow,
    }
    if (isNothing(taken)) return undefined
    this.#stages = noStages()
    this.#latency = noLatency()
    return taken
  }
}

export interface MeasuredRequest {
  readonly counters: RouteCounters
  /** Aborted when the client has gone away. */
  readonly gone: AbortSignal
}

/** Counts the answer with the time it took, or that a client who waited for it got none for a reason of ours. */
export async function withMetrics<T extends { readonly reply: { readonly status: number } }>(
  now: () => number,
  { counters, gone }: MeasuredRequest,
  answer: () => Promise<T>,
): Promise<T> {
  const began = now()
  try {
    const answered = await answer()
    const { status } = answered.reply
    if (status === 200) counters.succeed(now() - began, now())
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

/** What is given for nothing, by its path. */
export function freeName(path: string): string {
  return `free ${path}`
}

export function isSold(name: string): boolean {
  return name.startsWith('sold ')
}

/** Called for a change of a record once it is made; must be quick and must not throw. */
export type OnPaymentChange = (previous: PaymentRecord, next: PaymentRecord) => void

/**
 * The same ledger, which counts what becomes of the payments of an operation. Every change is made by one process and
 * once, by a request, a copy of it, or recovery after a crash. So is every count.
 */
export function meterLedger(
  ledger: Ledger,
  usage: { of(name: string): RouteCounters },
  settle?: OnPaymentChange,
): Ledger {
  const commit = async (changes: readonly Change[]): Promise<boolean> => {
    const committed = await ledger.commit(changes)
    if (committed) for (const change of changes) count(change)
    return committed
  }
  const count = ({ previous, next }: Change): void => {
    const counters = usage.of(soldName(previous.operation))
    if (next !== undefined) {
      countChange(counters, previous, next)
      settle?.(previous, next)
    } else if (previous.receipt === undefined && !FREE.has(previous.state)) counters.count('uncharged')
  }
  return {
    ...ledger,
    commit,
    replace: (previous, next) => commit([{ previous, next }]),
    remove: (entry) => commit([{ previous: entry, next: undefined }]),
  }
}

/** What was only reserved was refused after all; what is voided was counted when it was. */
const FREE: ReadonlySet<State> = new Set<State>(['reserved', 'voided'])

function countChange(counters: RouteCounters, previous: PaymentRecord, next: PaymentRecord): void {
  if (previous.receipt === undefined && next.receipt !== undefined) counters.count('settled')
  if (previous.state === next.state) return
  if (previous.state === 'reserved') counters.count('verified')
  if (next.state === 'sent') counters.count('sent')
  if (next.state === 'voided') counters.count('uncharged')
}
