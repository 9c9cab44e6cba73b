/** Work that uses the ledger, whether or not anybody still waits for it: the ledger is closed after it. */
export class InFlight {
  readonly #work = new Set<Promise<unknown>>()
  readonly #later = new Set<NodeJS.Timeout>()

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

  /** What is waiting is given up; resolves when what has begun is over, well or not. */
  async end(): Promise<void> {
    for (const timer of this.#later) clearTimeout(timer)
    this.#later.clear()
    await Promise.allSettled(this.#work)
  }
}
