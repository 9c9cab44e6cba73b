/** A rate limit for the requests of one client: `burst` requests at once after a rest, and one more per interval. */
export interface RateLimit {
  readonly burst: number
  /** Milliseconds. */
  readonly interval: number
}

/** Clients remembered in a process; the one that has been idle for longest is dropped first. */
const LARGEST_CLIENTS = 50_000

/**
 * Counts requests of clients in this process by the generic cell rate algorithm. It stores one number per client:
 * the time at which the whole burst is available again.
 */
export class RateLimiter {
  readonly #now: () => number
  readonly #free = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts a request and returns 0, or for a request beyond the limit the milliseconds until it fits. */
  spend(client: string, { burst, interval }: RateLimit): number {
    const now = this.#now()
    const free = Math.max(this.#free.get(client) ?? 0, now) + interval
    const wait = free - now - burst * interval
    if (wait > 0) return wait
    this.#free.delete(client)
    this.#free.set(client, free)
    for (const oldest of this.#free.keys()) {
      if (this.#free.size <= LARGEST_CLIENTS) break
      this.#free.delete(oldest)
    }
    return 0
  }
}
