import type { PaymentRecord, State } from '../ledger/payment-record.ts'
import type { Change, Ledger } from '../ledger/ledger.ts'
import type { LeaseContext } from '../ledger/lease.ts'

/** Upper bounds of the classes in milliseconds; the last class has none. */
const BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000]

/** How many answers took how long: one number for each class. */
type Latency = readonly number[]

/** The class that milliseconds fall into. */
function classOf(ms: number): number {
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
const STAGES = ['unpaid', 'presented', 'verified', 'settled', 'sent', 'uncharged', 'failed'] as const

type Stage = (typeof STAGES)[number]

type Stages = Readonly<Record<Stage, number>>

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
    stages: { unpaid: 0, presented: 0, verified: 0, settled: 0, sent: 0, uncharged: 0, failed: 0 },
    latency: Array.from({ length: BOUNDS.length + 1 }, () => 0),
    lastSuccess: 0,
    lastFailure: 0,
    failedInARow: 0,
  }
}

export const NOTHING: Counts = nothing()

/** Both together, whichever process or day they are of. */
export function add(one: Counts, other: Counts): Counts {
  const { stages } = nothing()
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
 * Counts the answer with the time it took, or that a client who waited for it got none for a reason of ours. `gone` is
 * aborted when the client has gone away.
 */
export async function withMetrics<T extends { readonly reply: { readonly status: number } }>(
  now: () => number,
  { counters, gone }: { readonly counters: RouteCounters; readonly gone: AbortSignal },
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
  const isUndone = previous.undone !== undefined || next.undone !== undefined
  if (previous.receipt === undefined && next.receipt !== undefined && !isUndone) counters.count('settled')
  if (previous.state === next.state || isUndone) return
  if (previous.state === 'reserved') counters.count('verified')
  if (next.state === 'sent') counters.count('sent')
  if (next.state === 'voided') counters.count('uncharged')
}

/**
 * What was counted on each day (UTC), by the name of what is counted. Oldest first; the last one is today. Days on which
 * nothing happened are there too.
 */
export type Days = readonly { readonly date: string; readonly counts: ReadonlyMap<string, Counts> }[]

/** What one run of a process has counted on one day so far: a later one takes the place of an earlier one. */
interface Page {
  readonly version: number
  readonly by: string
  readonly date: string
  readonly number: number
  readonly counts: readonly (readonly [name: string, counts: Counts])[]
}

/** Pages of another shape are passed over. */
const VERSION = 1
/** Where the processes of a ledger keep their pages. */
const PAGES = 'usage'

const DAYS_KEPT = 7
const DAY_MS = 86_400_000
/** A caller that asks all the time must not keep the store busy, least of all one that is away. */
const RECALL_MS = 5_000

/**
 * What was counted lately, over all processes of a ledger and their restarts. Every run of a process writes a page a
 * day, and writes it again as a whole, so that one written twice or half-way counts nothing twice; readers add the pages
 * up. A process that is killed takes with it what it has counted since it last wrote.
 */
export class UsageStore {
  readonly #desk: LeaseContext
  readonly #counters = new Map<string, RouteCounters>()
  /** Of this process, by date. */
  readonly #own = new Map<string, Map<string, Counts>>()
  /** Dates whose page lacks something. */
  readonly #unwritten = new Set<string>()
  /** Pages in the ledger, as far as can be known, by date; all but the last were replaced. */
  readonly #written = new Map<string, string[]>()
  #recalled: { readonly at: number; readonly pages: Promise<readonly Page[]> } | undefined
  #number = 0

  constructor(desk: LeaseContext) {
    this.#desk = desk
  }

  /** The same name gets the same counters: it outlives revisions of the catalog. */
  of(name: string): RouteCounters {
    const counters = this.#counters.get(name) ?? new RouteCounters()
    this.#counters.set(name, counters)
    return counters
  }

  /** Writes down what was counted since the last time; when it fails, the next time does. */
  async write(): Promise<void> {
    this.#gather()
    const dates = [...this.#unwritten]
    for (const date of dates) {
      // What is counted while it is written marks it again.
      this.#unwritten.delete(date)
      await this.#writePage(date).catch((fault: unknown) => {
        this.#unwritten.add(date)
        throw fault
      })
    }
    // Stores drop what has ended when they are asked for the rest: replaced pages would pile up where nobody reads them.
    if (dates.length > 0) await this.#recallAnew()
  }

  /** The last days of this process alone, up to now. */
  own(): Days {
    this.#gather()
    return this.#lastDates().map((date) => ({ date, counts: this.#own.get(date) ?? new Map() }))
  }

  /** The last days of all processes: of this one up to now, of the others as of their last writing, a few seconds ago. */
  async read(): Promise<Days> {
    const { at, pages: recalled } = this.#recalled ?? {}
    const isRecent = at !== undefined && this.#desk.now() - at < RECALL_MS
    const pages = await (isRecent && recalled !== undefined ? recalled : this.#recallAnew())
    return this.own().map(({ date, counts }) => {
      const total = new Map(counts)
      for (const page of pages) {
        if (page.date !== date) continue
        for (const [name, each] of page.counts) total.set(name, add(total.get(name) ?? NOTHING, each))
      }
      return { date, counts: total }
    })
  }

  #recallAnew(): Promise<readonly Page[]> {
    const pages = this.#recall()
    this.#recalled = { at: this.#desk.now(), pages }
    return pages
  }

  /** The last page of every other run and day. */
  async #recall(): Promise<readonly Page[]> {
    const { ledger, owner, now } = this.#desk
    const pages = new Map<string, Page>()
    for (const fact of await ledger.listExpiring(PAGES, now())) {
      const page: Page = JSON.parse(fact)
      const name = `${page.date} ${page.by}`
      const known = pages.get(name)
      if (page.version === VERSION && page.by !== owner && page.number > (known?.number ?? 0))
        pages.set(name, page)
    }
    return [...pages.values()]
  }

  /** What was counted since the last time belongs to today. */
  #gather(): void {
    const dates = this.#lastDates()
    for (const date of this.#own.keys()) if (!dates.includes(date)) this.#forget(date)
    const today = dates.at(-1) ?? ''
    const counts = this.#own.get(today) ?? new Map<string, Counts>()
    this.#own.set(today, counts)
    for (const [name, counters] of this.#counters) {
      const taken = counters.take()
      if (taken === undefined) continue
      counts.set(name, add(counts.get(name) ?? NOTHING, taken))
      this.#unwritten.add(today)
    }
  }

  #forget(date: string): void {
    this.#own.delete(date)
    this.#unwritten.delete(date)
    this.#written.delete(date)
  }

  async #writePage(date: string): Promise<void> {
    const { ledger, owner, now } = this.#desk
    this.#number += 1
    const counts = [...(this.#own.get(date) ?? [])]
    const page: Page = { version: VERSION, by: owner, date, number: this.#number, counts }
    const fact = JSON.stringify(page)
    const replaced = this.#written.get(date) ?? []
    // A store that says no may have taken it.
    this.#written.set(date, [...replaced, fact])
    await ledger.addExpiring(PAGES, fact, Date.parse(date) + DAYS_KEPT * DAY_MS)
    for (const old of replaced) await ledger.addExpiring(PAGES, old, now())
    this.#written.set(date, [fact])
  }

  #lastDates(): string[] {
    const today = this.#desk.now()
    return Array.from({ length: DAYS_KEPT }, (_, place) =>
      new Date(today - (DAYS_KEPT - 1 - place) * DAY_MS).toISOString().slice(0, 10),
    )
  }
}

/** What one name has counted over some days, for its operator. */
export interface FigureRow extends Stages {
  readonly name: string
  /** With status 200. */
  readonly answers: number
  /** Null: there was no answer. */
  readonly p50_ms: number | null
  readonly p95_ms: number | null
  readonly last_success: string | null
}

/** A row for everything that was counted, in the order of the alphabet. */
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
