/** What one client may do: so many at once after a rest, and one more in each interval. */
export interface Rate {
  readonly burst: number
  /** Milliseconds. */
  readonly interval: number
}

/** Clients remembered in a process; the one that has been quiet longest is forgotten first. */
const LARGEST = 50_000

/**
 * Counts what clients do, in this process. One number a client is enough: the moment at which its budget is whole again
 * (the generic cell rate algorithm).
 */
export class MemoryBudget {
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
      if (this.#whole.size <= LARGEST) break
      this.#whole.delete(oldest)
    }
    return 0
  }
}
