import type { Cache as Policy } from '../catalog/catalog.ts'
import { Failure, InvalidParameter } from '../errors.ts'
import type { Answer } from '../handler.ts'

/** An answer and when its source gave it. */
export interface Fetched {
  readonly answer: Answer
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Where fetched answers are kept: in the process, or shared between processes. `test/contract/cache.ts` says how. */
export interface CacheStore {
  readonly name: string
  /** A copy of what was set, which the caller may change. */
  get(key: string): Promise<Fetched | undefined>
  /** Keeps an answer for `keepMs` milliseconds (more than 0) at the most; it may be dropped sooner. */
  set(key: string, fetched: Fetched, keepMs: number): Promise<void>
  close(): Promise<void>
}

export interface Served extends Fetched {
  readonly cached: boolean
  /** Set when the source failed and an older answer is given in its place. */
  readonly stale: boolean
}

/** Answers through a cache: fresh ones from the store, one fetch for however many ask, an older one if that fails. */
export class AnswerCache {
  readonly #store: CacheStore
  readonly #now: () => number
  readonly #flights = new Map<string, Promise<Served>>()

  constructor(store: CacheStore, now: () => number) {
    this.#store = store
    this.#now = now
  }

  get name(): string {
    return this.#store.name
  }

  /**
   * `produce` runs once for all who ask for `key` meanwhile; its failure is theirs too, unless the failure is the
   * source's and an answer not older than the policy's `staleIfError` is at hand. Failures are never kept. A store that
   * fails costs a fetch, never an answer.
   */
  async through(key: string, policy: Policy, produce: () => Promise<Answer>): Promise<Served> {
    const underway = this.#flights.get(key)
    if (underway !== undefined) {
      const served = await underway
      // Each caller may do with its answer what it likes.
      return { ...served, answer: structuredClone(served.answer) }
    }
    const flight = this.#serve(key, policy, produce).finally(() => this.#flights.delete(key))
    this.#flights.set(key, flight)
    return flight
  }

  async #serve(key: string, policy: Policy, produce: () => Promise<Answer>): Promise<Served> {
    const kept = await this.#store.get(key).catch(() => undefined)
    if (kept !== undefined && this.#age(kept) < policy.ttl) return { ...kept, cached: true, stale: false }
    let answer: Answer
    try {
      answer = await produce()
    } catch (fault) {
      const usable = kept !== undefined && this.#age(kept) < policy.ttl + policy.staleIfError
      if (!usable || isVerdict(fault)) throw fault
      return { ...kept, cached: true, stale: true }
    }
    const fetched = { answer, at: this.#now() }
    await this.#store.set(key, fetched, policy.ttl + policy.staleIfError).catch(() => undefined)
    return { ...fetched, cached: false, stale: false }
  }

  #age({ at }: Fetched): number {
    return this.#now() - at
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

/** A definite word on the request (no such thing, wrong arguments) and no trouble of the source: older answers are void. */
function isVerdict(fault: unknown): boolean {
  return fault instanceof InvalidParameter || (fault instanceof Failure && fault.status < 500)
}
