/** Work that uses the ledger, whether or not anybody still waits for it: the ledger is closed after it. */
export class InFlight {
  readonly #work = new Set<Promise<unknown>>()
  readonly #later = new Set<NodeJS.Timeout>()
  #ended = false

  /** Counts the work in; gives it back as it is. */
  add<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work)
    const counted = work.finally(() => this.#work.delete(work))
    // Its failure is for whoever waits for the work itself.
    counted.catch(() => undefined)
    return work
  }

  /** Begins the work after `ms` milliseconds, unless everything ends before. */
  later(ms: number, begin: () => Promise<unknown>): void {
    const timer = setTimeout(() => {
      this.#later.delete(timer)
      void this.add(begin())
    }, ms)
    timer.unref()
    this.#later.add(timer)
  }

  /** Begins the work every `ms` milliseconds, but never beside itself, until everything ends. */
  every(ms: number, begin: () => Promise<unknown>): void {
    this.later(ms, async () => {
      await begin().finally(() => {
        if (!this.#ended) this.every(ms, begin)
      })
    })
  }

  /** What is waiting is given up; resolves when what has begun is over, well or not. */
  async end(): Promise<void> {
    this.#ended = true
    for (const timer of this.#later) clearTimeout(timer)
    this.#later.clear()
    await Promise.allSettled(this.#work)
  }
}
