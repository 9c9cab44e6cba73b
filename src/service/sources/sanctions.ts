import { Failure } from 'ratecard/handler'
import { beforeDeadline, DeadlinePassed } from './deadline.ts'
import { ListCache, type Refreshed } from './sanctions/list-cache.ts'
import type { ListId, ListTerms } from './sanctions/lists.ts'
import { listStatus, type ListStatus } from './sanctions/list-status.ts'
import type { ListFacts } from './sanctions/build-index.ts'
import { ListThread } from './sanctions/list-thread.ts'
import type { ListHit, Outcome, Threshold } from './sanctions/worker.ts'
import type { MetricsBySource } from './source-metrics.ts'
import type { Runtime } from './source-runtime.ts'

export interface SanctionsOptions {
  readonly lists: readonly ListTerms[]
  /** Where lists stand as files; undefined keeps them in memory only. */
  readonly directory: string | undefined
  /** Where they are fetched from. A list without an address and without a file is not consulted. */
  readonly urls: Readonly<Partial<Record<ListId, string>>>
}

/** A list that was searched. */
export interface Consulted {
  readonly terms: ListTerms
  readonly facts: ListFacts
}

export interface Findings {
  /** The name as it was compared. */
  readonly normalized: string
  /** How many words it has, without particles such as al and bin. */
  readonly words: number
  /** The score from which on a hit counts. */
  readonly threshold: number
  /** How many entries resemble it; `hits` are the best of them. */
  readonly count: number
  readonly hits: readonly ListHit[]
  readonly consulted: readonly Consulted[]
  readonly notConsulted: readonly ListTerms[]
}

export interface Question {
  readonly name: string
  readonly threshold: Threshold
  readonly limit: number
}

/** What became of a list that was to be updated. */
export interface ListUpdate {
  readonly id: ListId
  readonly kind: Refreshed['kind']
  /** Why it failed, phrased to follow "the list". */
  readonly reason?: string
}

/** A question waits this long for lists that are being loaded; those on disk take two or three seconds. */
const PATIENCE_MS = 7_000
const SEARCH_MS = 3_000
const RETRY_AFTER_SECONDS = 30

/**
 * The sanctions lists: loaded by the first question, then kept current as questions come. A question is answered when
 * every configured list is loaded and no older than it may be, and otherwise fails with `dataset_unavailable`: an answer
 * from some of the lists would be taken for one from all.
 *
 * @example
 * const sanctions = new Sanctions({ lists: LISTS, directory, urls }, runtime, records)
 * const { hits, consulted } = await sanctions.search({ name: 'Mahan Air', threshold, limit: 10 }, context.signal)
 */
export class Sanctions {
  readonly #caches: readonly ListCache[]
  readonly #thread: ListThread
  readonly #now: () => Date
  #updating: Promise<void> | undefined

  constructor({ lists, directory, urls }: SanctionsOptions, runtime: Runtime, records: MetricsBySource) {
    this.#now = runtime.now
    this.#thread = new ListThread(() => {
      for (const cache of this.#caches) cache.forget()
    })
    this.#caches = lists.map((terms) => {
      const options = { terms, directory, url: urls[terms.id] }
      return new ListCache(options, this.#thread, runtime, records.of(terms.source))
    })
  }

  async search(question: Question, signal: AbortSignal): Promise<Findings> {
    await this.#ready(signal)
    const consulted = this.#caches.flatMap(({ isConfigured, terms, facts }) =>
      isConfigured && facts !== undefined ? [{ terms, facts }] : [],
    )
    const found = await this.#ask(question, signal)
    // A thread that has just been started again holds nothing: that is no answer.
    if (consulted.some(({ terms }) => !found.searched.includes(terms.id)))
      throw unavailable('The lists are being loaded again')
    const notConsulted = this.#caches.filter((each) => !each.isConfigured).map(({ terms }) => terms)
    return { ...found, consulted, notConsulted }
  }

  /** Fetches every list that has an address, one after the other; `progress` is told how many bytes have come. */
  async update(progress: (id: ListId, bytes: number) => void): Promise<ListUpdate[]> {
    const updates: ListUpdate[] = []
    for (const cache of this.#caches.filter(({ url }) => url !== undefined)) {
      const { id } = cache.terms
      await cache.loadStored()
      updates.push({ id, ...(await cache.refresh((bytes) => progress(id, bytes))) })
    }
    return updates
  }

  /** How the lists stand that are loaded or on disk; nothing is fetched. */
  async status(): Promise<ListStatus[]> {
    for (const cache of this.#caches) await cache.loadStored()
    return this.#caches.map((cache) => listStatus(cache, this.#now()))
  }

  /** Ends the thread and gives its memory back; the next question loads the lists again. */
  async close(): Promise<void> {
    await this.#thread.end()
  }

  /** Returns when every configured list may be relied on; what is due is fetched meanwhile, in one go for all who ask. */
  async #ready(signal: AbortSignal): Promise<void> {
    this.#updating ??= this.#update().finally(() => {
      this.#updating = undefined
    })
    const updating = this.#updating
    // Nobody may be waiting when it fails: the lists themselves then say what is missing.
    updating.catch(() => undefined)
    if (this.#refusal() === undefined) return
    const cause = await beforeDeadline(signal, PATIENCE_MS, () => updating).catch((fault: unknown) => fault)
    const refusal = this.#refusal(cause)
    if (refusal !== undefined) throw refusal
  }

  async #update(): Promise<void> {
    await Promise.all(this.#caches.map((cache) => cache.updateIfDue()))
  }

  #refusal(cause?: unknown): Failure | undefined {
    const configured = this.#caches.filter(({ isConfigured }) => isConfigured)
    if (configured.length === 0) return unavailable('No sanctions list is set up', cause)
    const missing = configured.find(({ problem }) => problem !== undefined)
    return missing && unavailable(`The list ${missing.terms.id} ${missing.problem}`, cause)
  }

  async #ask(question: Question, signal: AbortSignal): Promise<Outcome & { readonly kind: 'found' }> {
    try {
      const outcome = await beforeDeadline(signal, SEARCH_MS, () =>
        this.#thread.perform({ kind: 'search', ...question }),
      )
      if (outcome.kind === 'found') return outcome
      throw new Error(`the thread of the lists answered ${outcome.kind}`)
    } catch (cause) {
      if (!(cause instanceof DeadlinePassed)) throw unavailable('The search broke off', cause)
      throw new Failure('handler_timeout', 'The search waited too long for its turn', { cause })
    }
  }
}

function unavailable(sentence: string, cause?: unknown): Failure {
  return new Failure('dataset_unavailable', sentence, { retryAfter: RETRY_AFTER_SECONDS, cause })
}
