/** What a program has opened; the last to be opened is closed first. */
export class ResourceStack {
  readonly #closers: (() => Promise<unknown>)[] = []
  readonly #report: (fault: unknown) => void
  #closed = Promise.resolve()

  /** `report` receives why something could not be closed: the others are closed all the same. */
  constructor(report: (fault: unknown) => void) {
    this.#report = report
  }

  defer(close: () => Promise<unknown>): void {
    this.#closers.push(close)
  }

  /** Closes everything. A second call waits for the first: an exit while a store is being closed may never end. */
  close(): Promise<void> {
    this.#closed = this.#closed.then(async () => {
      for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop())
        await close().catch(this.#report)
    })
    return this.#closed
  }
}
