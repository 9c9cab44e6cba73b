import { LRUCache } from 'lru-cache'
import type { Cache as Policy } from '../catalog/catalog.ts'
import { Failure, InvalidParameter } from '../errors.ts'

/** A value and when its source gave it. */
export interface Fetched<Value> {
  readonly value: Value
  /** Milliseconds since the epoch. */
  readonly at: number
  /** For one that is to be fetched anew sooner than others; milliseconds since `at`. */
  readonly freshFor?: number
}

/** Where what was fetched is kept: in the process, or shared between processes. `test/contract/cache.ts` says how. */
export interface CacheStore {
  readonly name: string
  /** A copy of what was set, which the caller may change. */
  get(key: string): Promise<Fetched<unknown> | undefined>
  /** Keeps a value that JSON can say for `keepMs` milliseconds (more than 0) at the most; it may be dropped sooner. */
  set(key: string, fetched: Fetched<unknown>, keepMs: number): Promise<void>
  /** Asks for the turn to fetch for `key`, which one process has at a time. */
  claim(key: string): Promise<CacheLock>
  /**
   * Takes one from the budget of a client, or none when nothing is left: then it resolves to the milliseconds from now
   * until there is; else to 0. All who use the store count together. Rejects when that cannot be done.
   */
  spend(client: string, rate: Rate): Promise<number>
  close(): Promise<void>
}

export type CacheLock =
  | { readonly kind: 'ours'; readonly end: () => Promise<void> }
  /** `over` resolves when who has it is done, or is taken for dead; it never rejects. */
  | { readonly kind: 'theirs'; readonly over: () => Promise<void> }

/** Of a store that no other process uses, or that cannot be asked. */
const UNDISPUTED: CacheLock = { kind: 'ours', end: async () => undefined }

export interface Served<Value> extends Fetched<Value> {
  readonly cached: boolean
  /** Set when the source failed and an older value is given in its place. */
  readonly stale: boolean
}

/** Tells whether what a store holds is what is looked for: another version of the service may have written it. */
type Guard<Value> = (value: unknown) => value is Value

/** Gets what was kept before, as long as it may still be given. */
type Produce<Value> = (previous: Value | undefined) => Promise<Fetched<Value>>

/** Fetches through a store: fresh values come from there, one fetch serves all who ask, an older value if that fails. */
export class Cache {
  readonly #store: CacheStore
  readonly #now: () => number
  readonly #budget: MemoryBudget
  readonly #flights = new Map<string, Promise<Served<unknown>>>()

  constructor(store: CacheStore, now: () => number) {
    this.#store = store
    this.#now = now
    this.#budget = new MemoryBudget(now)
  }

  /**
   * `produce` runs once for all who ask for `key` meanwhile, in whichever process; its failure is theirs too, unless the
   * failure is the source's and a value not older than the policy's `staleIfError` is at hand. Failures are never kept. A
   * store that fails costs a fetch, never an answer.
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
    // Each caller may do with its value what it likes.
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
    const turn = await this.#store.claim(key).catch(() => UNDISPUTED)
    try {
      // Who waited once does not wait again: after a failure elsewhere everybody asks the source themselves.
      if (turn.kind === 'theirs') await turn.over()
      const kept = (await this.#find(key, isValue)) ?? found
      if (kept !== undefined && this.#isFresh(kept, policy)) return { ...kept, cached: true, stale: false }
      return await this.#fetch(key, policy, kept, produce)
    } finally {
      if (turn.kind === 'ours') await turn.end().catch(() => undefined)
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

  /** As the store has it; when that is away, as this process has it alone. */
  spend(client: string, rate: Rate): Promise<number> {
    return this.#store.spend(client, rate).catch(() => this.#budget.spend(client, rate))
  }
}

/** A definite word on the request (no such thing, wrong arguments) and no trouble of the source: older answers are void. */
function isVerdict(fault: unknown): boolean {
  return fault instanceof InvalidParameter || (fault instanceof Failure && fault.status < 500)
}

/** What one client may do: so many at once after a rest, and one more in each interval. */
export interface Rate {
  readonly burst: number
  /** Milliseconds. */
  readonly interval: number
}

/** Clients remembered in a process; the one that has been quiet longest is forgotten first. */
const LARGEST_CLIENTS = 50_000

/**
 * Counts what clients do, in this process. One number a client is enough: the moment at which its budget is whole again
 * (the generic cell rate algorithm).
 */
class MemoryBudget {
  readonly #now: () => number
  readonly #whole = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Takes one, or none when nothing is left: then it says how many milliseconds from now there is. */
  spend(client: string, { burst, interval }: Rate): number {
    const now = this.#now()
    const whole = Math.max(this.#whole.get(client) ?? 0, now) + interval
    const wait = whole - now - burst * interval
    if (wait > 0) return wait
    this.#whole.delete(client)
    this.#whole.set(client, whole)
    for (const oldest of this.#whole.keys()) {
      if (this.#whole.size <= LARGEST_CLIENTS) break
      this.#whole.delete(oldest)
    }
    return 0
  }
}

/** Characters of values kept in the process; the least recently used go first. */
const LARGEST = 64 * 1024 * 1024
/** One that is larger is not kept: it would push out all the others. */
const LARGEST_VALUE = LARGEST / 16

interface Kept {
  /** As text, so that nobody who gets the value can change it for the next one. */
  readonly json: string
  readonly moment: Omit<Fetched<unknown>, 'value'>
}

/** Keeps values in this process only. */
export function createMemoryCache(): CacheStore {
  const budget = new MemoryBudget(() => performance.now())
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
    claim: async () => UNDISPUTED,
    spend: async (client, rate) => budget.spend(client, rate),
    close: async () => entries.clear(),
  }
}
