/** Tasks that use the ledger, which is closed only after they end, whether or not a request waits for them. */
export class BackgroundTasks {
  readonly #work = new Set<Promise<unknown>>()
  readonly #later = new Set<NodeJS.Timeout>()
  readonly #ending = new AbortController()

  /** Aborted when the service stops. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** Tracks a task and returns it. */
  add<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work)
    const counted = work.finally(() => this.#work.delete(work))
    // The request that waits for the task handles its failure.
    counted.catch(() => undefined)
    return work
  }

  /** Starts a task after `ms` milliseconds, unless the service stops before, or what this returns is called. */
  later(ms: number, begin: () => Promise<unknown>): () => void {
    const timer = setTimeout(() => {
      this.#later.delete(timer)
      void this.add(begin())
    }, ms)
    timer.unref()
    this.#later.add(timer)
    return () => {
      clearTimeout(timer)
      this.#later.delete(timer)
    }
  }

  /** Starts a task every `ms` milliseconds, never concurrently, until the service stops. */
  every(ms: number, begin: () => Promise<unknown>): void {
    this.later(ms, () => this.#repeat(ms, begin))
  }

  /** As `every`, and starts the task now for the first time. */
  nowAndEvery(ms: number, begin: () => Promise<unknown>): void {
    void this.add(this.#repeat(ms, begin))
  }

  /** Cancels pending tasks; resolves when the started ones have ended, and those that they have started. */
  async end(): Promise<void> {
    this.#ending.abort()
    for (const timer of this.#later) clearTimeout(timer)
    this.#later.clear()
    while (this.#work.size > 0) await Promise.allSettled(this.#work)
  }

  async #repeat(ms: number, begin: () => Promise<unknown>): Promise<void> {
    await begin().finally(() => {
      if (!this.ending.aborted) this.every(ms, begin)
    })
  }
}
