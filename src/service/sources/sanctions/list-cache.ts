import type { SourceMetrics } from '../source-metrics.ts'
import type { Runtime } from '../source-runtime.ts'
import { download, type Progress, type Validators } from './download.ts'
import { confirmStored, storedAt } from './files.ts'
import type { ListTerms } from './lists.ts'
import type { ListFacts } from './build-index.ts'
import type { ListThread } from './list-thread.ts'
import type { Outcome } from './worker.ts'

/** What became of a list that was asked for. */
export type Refreshed =
  | { readonly kind: 'updated' | 'unchanged' }
  /** `reason` goes on after the list's name. What was in use still is. */
  | { readonly kind: 'failed'; readonly reason: string }

export interface ListCacheOptions {
  readonly terms: ListTerms
  readonly url: string | undefined
  readonly directory: string | undefined
}

/** A publisher that fails is not asked again before. */
const RETRY_MS = 60_000

/** One list: from its file on disk, from its publisher, and how old it may be. */
export class ListCache {
  readonly terms: ListTerms
  readonly url: string | undefined
  readonly #directory: string | undefined
  readonly #thread: ListThread
  readonly #runtime: Runtime
  readonly #record: SourceMetrics
  #facts: ListFacts | undefined
  #fault: string | undefined
  #validators: Validators | undefined
  /** Undefined until the disk was looked at. */
  #isStored: boolean | undefined
  #seenOnDisk: number | undefined
  #askedAt = -Infinity

  constructor(
    { terms, url, directory }: ListCacheOptions,
    thread: ListThread,
    runtime: Runtime,
    record: SourceMetrics,
  ) {
    this.terms = terms
    this.url = url
    this.#directory = directory
    this.#thread = thread
    this.#runtime = runtime
    this.#record = record
  }

  get facts(): ListFacts | undefined {
    return this.#facts
  }

  /** The operator wants it: there is an address for it, or a file of it, or that is not known yet. */
  get isConfigured(): boolean {
    return this.url !== undefined || (this.#directory !== undefined && this.#isStored !== false)
  }

  /** Why it must not be relied on, phrased to follow its name; undefined while it may. */
  get problem(): string | undefined {
    if (this.#facts === undefined) return this.#fault ?? 'is not loaded yet'
    if (this.#age <= this.terms.maxAge) return undefined
    const [hours, most] = [this.#age, this.terms.maxAge].map((ms) => Math.floor(ms / 3_600_000))
    return `was last read ${hours} hours ago, more than the ${most} it is relied on for`
  }

  /** The thread is gone, and the list with it. */
  forget(): void {
    this.#facts = undefined
    this.#validators = undefined
    this.#seenOnDisk = undefined
    this.#askedAt = -Infinity
  }

  /** Takes up what is newer on disk, and asks the publisher when the list is due. */
  async updateIfDue(): Promise<void> {
    await this.loadStored()
    const isDue = this.#facts === undefined || this.#age >= this.terms.refresh
    if (isDue && this.#now - this.#askedAt >= RETRY_MS) await this.refresh(() => {})
  }

  /** Takes up what is newer on disk: another process may have fetched it, or the operator put it there. */
  async loadStored(): Promise<void> {
    if (this.#directory === undefined) return
    const at = await storedAt(this.#directory, this.terms.id)
    this.#isStored = at !== undefined
    if (at === undefined || at === this.#seenOnDisk) return
    this.#seenOnDisk = at
    this.#take(await this.#thread.perform({ kind: 'load', list: this.terms, directory: this.#directory }))
  }

  /** Asks the publisher, and takes what it sends if that is all of the list and no older. */
  async refresh(progress: Progress): Promise<Refreshed> {
    if (this.url === undefined) return { kind: 'failed', reason: 'has no address to be fetched from' }
    this.#askedAt = this.#now
    this.#record.countAsked()
    const held = this.#facts === undefined ? undefined : this.#validators
    const fetched = await download(this.url, held, this.#runtime, progress)
    if (fetched.kind === 'failed') return this.#failed(fetched.reason)
    const fetchedAt = this.#now
    if (fetched.kind === 'unchanged') return this.#confirm(fetchedAt)
    const before = this.#facts?.sha256
    const { terms: list } = this
    const { file, validators } = fetched
    const fault = this.#take(
      await this.#thread.perform({ kind: 'take', list, file, fetchedAt, directory: this.#directory }),
    )
    if (fault !== undefined) return this.#failed(fault)
    this.#validators = validators
    if (this.#directory !== undefined) this.#seenOnDisk = await storedAt(this.#directory, list.id)
    return { kind: this.#facts?.sha256 === before ? 'unchanged' : 'updated' }
  }

  async #confirm(at: number): Promise<Refreshed> {
    if (this.#facts !== undefined) this.#facts = { ...this.#facts, fetchedAt: at }
    if (this.#directory !== undefined) {
      // Another process may take the file away; the list in use is current anyway.
      await confirmStored(this.#directory, this.terms.id, at).catch(() => undefined)
      this.#seenOnDisk = await storedAt(this.#directory, this.terms.id)
    }
    return { kind: 'unchanged' }
  }

  #failed(reason: string): Refreshed {
    this.#fault = reason
    this.#record.countFailed()
    return { kind: 'failed', reason }
  }

  /** What is wrong; undefined when the list is in use, and on disk where it should be. */
  #take(outcome: Outcome): string | undefined {
    if (outcome.kind === 'indexed') {
      if (outcome.facts.sha256 !== this.#facts?.sha256)
        for (const { where, count } of outcome.facts.oddities) this.#record.countSkipped(where, count)
      this.#facts = outcome.facts
      this.#fault = undefined
      return outcome.storeError
    }
    if (outcome.kind === 'refused') this.#fault = outcome.reason
    return this.#fault
  }

  get #now(): number {
    return this.#runtime.now().getTime()
  }

  get #age(): number {
    return this.#now - (this.#facts?.fetchedAt ?? -Infinity)
  }
}
