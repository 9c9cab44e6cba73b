import type { Cache as Policy } from '../catalog/catalog.ts'
import type { Answer } from '../handler.ts'

/** An answer and when its source gave it. */
export interface Fetched {
  readonly answer: Answer
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Where fetched answers are kept: in the process, or shared between processes. */
export interface CacheStore {
  readonly name: string
  get(key: string): Promise<Fetched | undefined>
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
   * `produce` runs once for all who ask for `key` meanwhile; its failure is theirs too, unless an answer not older than
   * the policy's `staleIfError` is at hand.
   */
  async through(key: string, policy: Policy, produce: () => Promise<Answer>): Promise<Served> {
    const kept = await this.#store.get(key)
    if (kept !== undefined && this.#age(kept) < policy.ttl) return { ...kept, cached: true, stale: false }
    const underway = this.#flights.get(key)
    if (underway !== undefined) return underway
    const flight = this.#refresh(key, policy, kept, produce).finally(() => this.#flights.delete(key))
    this.#flights.set(key, flight)
    return flight
  }

  async #refresh(
    key: string,
    policy: Policy,
    kept: Fetched | undefined,
    produce: () => Promise<Answer>,
  ): Promise<Served> {
    try {
      const fetched = { answer: await produce(), at: this.#now() }
      await this.#store.set(key, fetched, policy.ttl + policy.staleIfError)
      return { ...fetched, cached: false, stale: false }
    } catch (fault) {
      if (kept === undefined || this.#age(kept) >= policy.ttl + policy.staleIfError) throw fault
      return { ...kept, cached: true, stale: true }
    }
  }

  #age({ at }: Fetched): number {
    return this.#now() - at
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}
