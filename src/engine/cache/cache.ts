import { LRUCache } from 'lru-cache'
import type { Cache as Policy } from '../catalog/catalog.ts'
import { Failure, InvalidParameter } from '../base/errors.ts'
import { RateLimiter, type RateLimit } from './rate-limit.ts'

/** A value and the time at which its source returned it. */
export interface Fetched<Value> {
  readonly value: Value
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Milliseconds since `at`, for a value that expires earlier than others. */
  readonly freshFor?: number
}

/** Storage of cached values, in the process or shared. `test/contract/cache.ts` specifies its behaviour. */
export interface CacheStore {
  readonly name: string
  /** Returns a copy, which the caller may change. */
  get(key: string): Promise<Fetched<unknown> | undefined>
  /** Keeps a JSON value for at most `keepMs` milliseconds (more than 0); it may be dropped earlier. */
  set(key: string, fetched: Fetched<unknown>, keepMs: number): Promise<void>
  /** Requests the lock for fetching `key`, which one process holds at a time. */
  lock(key: string): Promise<CacheLock>
  /**
   * Counts one request of a client against its rate limit. Resolves to 0, or for a request beyond the limit, which
   * is not counted, to the milliseconds until it fits. All processes that use the store count together. Rejects when
   * the store cannot count.
   */
  spend(client: string, limit: RateLimit): Promise<number>
  close(): Promise<void>
}

export type CacheLock =
  | { readonly kind: 'ours'; readonly end: () => Promise<void> }
  /** `over` resolves when the holder is done or its lock has expired; it never rejects. */
  | { readonly kind: 'theirs'; readonly over: () => Promise<void> }

/** The lock of a store that no other process uses, or that is unavailable. */
const UNDISPUTED: CacheLock = { kind: 'ours', end: async () => undefined }

export interface Served<Value> extends Fetched<Value> {
  readonly cached: boolean
  /** Whether the source failed and an older value is returned instead. */
  readonly stale: boolean
}

/** Checks that a stored value has the expected form: another version of the service may have written it. */
type Guard<Value> = (value: unknown) => value is Value

/** Fetches a value; receives the previous one while that may still be used. */
type Produce<Value> = (previous: Value | undefined) => Promise<Fetched<Value>>

/** Returns fresh values from a store, runs one fetch for all callers, and returns an older value if that fails. */
export class Cache {
  readonly #store: CacheStore
  readonly #now: () => number
  readonly #limiter: RateLimiter
  readonly #flights = new Map<string, Promise<Served<unknown>>>()

  constructor(store: CacheStore, now: () => number) {
    this.#store = store
    this.#now = now
    this.#limiter = new RateLimiter(now)
  }

  /**
   * Runs `produce` once for all concurrent callers of `key`, in every process. Its failure is theirs too, unless the
   * source failed and a value within the policy's `staleIfError` is available. Failures are never stored. A store
   * that fails costs a fetch, never an answer.
   */
  async through<Value>(
    key: string,
    policy: Policy,
    isValue: Guard<Value>,
    produce: Produce<Value>,
  ): Promise<Served<Value>> {
    const underway = this.#flights.get(key)
    if (underway === undefined) {
      const flight = this.#serve(key, policy, isValue, produce).finally(() => this.#flights.delete(key))
      this.#flights.set(key, flight)
      return flight
    }
    const served = await underway
    // Each caller may change its value.
    const value = structuredClone(served.value)
    if (!isValue(value)) throw new TypeError(`two kinds of values are kept as ${key}`)
    return { ...served, value }
  }

  async #serve<Value>(
    key: string,
    policy: Policy,
    isValue: Guard<Value>,
    produce: Produce<Value>,
  ): Promise<Served<Value>> {
    const found = await this.#find(key, isValue)
    if (found !== undefined && this.#isFresh(found, policy)) return { ...found, cached: true, stale: false }
    const lock = await this.#store.lock(key).catch(() => UNDISPUTED)
    try {
      // A caller waits only once: after a failure elsewhere each one asks the source itself.
      if (lock.kind === 'theirs') await lock.over()
      const kept = (await this.#find(key, isValue)) ?? found
      if (kept !== undefined && this.#isFresh(kept, policy)) return { ...kept, cached: true, stale: false }
      return await this.#fetch(key, policy, kept, produce)
    } finally {
      if (lock.kind === 'ours') await lock.end().catch(() => undefined)
    }
  }

  async #fetch<Value>(
    key: string,
    policy: Policy,
    kept: Fetched<Value> | undefined,
    produce: Produce<Value>,
  ): Promise<Served<Value>> {
    const usable = (): boolean => kept !== undefined && this.#age(kept) < policy.ttl + policy.staleIfError
    let fetched: Fetched<Value>
    try {
      fetched = await produce(usable() ? kept?.value : undefined)
    } catch (fault) {
      if (kept === undefined || !usable() || isVerdict(fault)) throw fault
      return { ...kept, cached: true, stale: true }
    }
    await this.#store.set(key, fetched, policy.ttl + policy.staleIfError).catch(() => undefined)
    return { ...fetched, cached: false, stale: false }
  }

  async #find<Value>(key: string, isValue: Guard<Value>): Promise<Fetched<Value> | undefined> {
    const kept = await this.#store.get(key).catch(() => undefined)
    return kept !== undefined && isValue(kept.value) ? { ...kept, value: kept.value } : undefined
  }

  #isFresh(fetched: Fetched<unknown>, { ttl }: Policy): boolean {
    return this.#age(fetched) < Math.min(ttl, fetched.freshFor ?? ttl)
  }

  #age({ at }: Fetched<unknown>): number {
    return this.#now() - at
  }

  /** Counts in the store, or in this process alone while the store is unavailable. */
  spend(client: string, limit: RateLimit): Promise<number> {
    return this.#store.spend(client, limit).catch(() => this.#limiter.spend(client, limit))
  }
}

/** Whether the failure is an answer about the request, such as "not found": older answers are then void. */
function isVerdict(fault: unknown): boolean {
  return fault instanceof InvalidParameter || (fault instanceof Failure && fault.status < 500)
}

/** Total characters of values kept in the process; the least recently used are dropped first. */
const LARGEST = 64 * 1024 * 1024
/** A larger value is not kept: it would push out all others. */
const LARGEST_VALUE = LARGEST / 16

interface Kept {
  /** Serialised, so that no caller can change the value for the next one. */
  readonly json: string
  readonly moment: Omit<Fetched<unknown>, 'value'>
}

/** Keeps values in this process only. */
export function createMemoryCache(): CacheStore {
  const limiter = new RateLimiter(() => performance.now())
  const entries = new LRUCache<string, Kept>({
    maxSize: LARGEST,
    maxEntrySize: LARGEST_VALUE,
    sizeCalculation: ({ json }, key) => key.length + json.length,
  })
  return {
    name: 'in-process',
    get: async (key) => {
      const kept = entries.get(key)
      return kept === undefined ? undefined : { value: JSON.parse(kept.json), ...kept.moment }
    },
    set: async (key, { value, ...moment }, keepMs) => {
      entries.set(key, { json: JSON.stringify(value), moment }, { ttl: keepMs })
    },
    lock: async () => UNDISPUTED,
    spend: async (client, limit) => limiter.spend(client, limit),
    close: async () => entries.clear(),
  }
}
