/** Runs work one after the other, in the order in which it was given. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  /** Resolves or rejects as the work does, once everything before it has ended. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined)
    return done
  }
}
