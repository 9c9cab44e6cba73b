export interface Rate {
  readonly perSecond: number
  /** How many calls may be made at once after a rest. */
  readonly burst: number
}

export type Ticket =
  | { readonly kind: 'granted'; readonly waitMs: number }
  | { readonly kind: 'refused'; readonly waitMs: number }

/**
 * Keeps calls to a source below its rate. A grant may lie in the future: its holder waits `waitMs` milliseconds, and
 * later callers queue behind. Nothing is taken when the wait would be longer than the caller's patience.
 */
export class TokenBucket {
  readonly #rate: Rate
  readonly #now: () => Date
  /** Below zero when grants lie in the future. */
  #tokens: number
  #filledAt: number

  constructor(rate: Rate, now: () => Date) {
    this.#rate = rate
    this.#now = now
    this.#tokens = rate.burst
    this.#filledAt = now().getTime()
  }

  take(patienceMs: number): Ticket {
    this.#fill()
    const missing = Math.max(0, 1 - this.#tokens)
    const waitMs = Math.ceil((missing / this.#rate.perSecond) * 1000)
    if (waitMs > patienceMs) return { kind: 'refused', waitMs }
    this.#tokens -= 1
    return { kind: 'granted', waitMs }
  }

  /** Returns a grant that was not used. */
  giveBack(): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + 1)
  }

  #fill(): void {
    const now = this.#now().getTime()
    // A clock set back must not drain the bucket.
    const seconds = Math.max(0, now - this.#filledAt) / 1000
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + seconds * this.#rate.perSecond)
    this.#filledAt = now
  }
}
