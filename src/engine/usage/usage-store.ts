import type { LedgerAccess } from '../ledger/lease.ts'
import type { Counts } from './counts.ts'
import { RouteCounters, add, NOTHING } from './counts.ts'

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
/**
 * Shortest time between two reads: callers that ask all the time must not keep the store busy, least of all an
 * unavailable one.
 */
const RECALL_MS = 5_000

/**
 * What was counted lately, over all processes of a ledger and their restarts. Every run of a process writes a page a
 * day, and writes it again as a whole, so that one written twice or half-way counts nothing twice; readers add the pages
 * up. A process that is killed takes with it what it has counted since it last wrote.
 */
export class UsageStore {
  readonly #leaseContext: LedgerAccess
  readonly #counters = new Map<string, RouteCounters>()
  /** Counts of this process, by date. */
  readonly #own = new Map<string, Map<string, Counts>>()
  /** Dates whose page in the ledger is not up to date. */
  readonly #unwritten = new Set<string>()
  /** Pages in the ledger, as far as can be known, by date; all but the last were replaced. */
  readonly #written = new Map<string, string[]>()
  #recalled: { readonly at: number; readonly pages: Promise<readonly Page[]> } | undefined
  #number = 0

  constructor(leaseContext: LedgerAccess) {
    this.#leaseContext = leaseContext
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
    // Stores delete expired facts when the others are read: without this read, replaced pages would pile up.
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
    const isRecent = at !== undefined && this.#leaseContext.now() - at < RECALL_MS
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
    this.#recalled = { at: this.#leaseContext.now(), pages }
    return pages
  }

  /** The last page of every other run and day. */
  async #recall(): Promise<readonly Page[]> {
    const { ledger, owner, now } = this.#leaseContext
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
    const { ledger, owner, now } = this.#leaseContext
    this.#number += 1
    const counts = [...(this.#own.get(date) ?? [])]
    const page: Page = { version: VERSION, by: owner, date, number: this.#number, counts }
    const fact = JSON.stringify(page)
    const replaced = this.#written.get(date) ?? []
    // A store that rejects may have stored it.
    this.#written.set(date, [...replaced, fact])
    // Asked for together, a store may make them in one commit. Where both pages remain, the later one counts.
    const ends = replaced.map((old) => ledger.addExpiring(PAGES, old, now()))
    await Promise.all([ledger.addExpiring(PAGES, fact, Date.parse(date) + DAYS_KEPT * DAY_MS), ...ends])
    this.#written.set(date, [fact])
  }

  #lastDates(): string[] {
    const today = this.#leaseContext.now()
    return Array.from({ length: DAYS_KEPT }, (_, place) =>
      new Date(today - (DAYS_KEPT - 1 - place) * DAY_MS).toISOString().slice(0, 10),
    )
  }
}
