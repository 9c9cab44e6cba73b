/** Refunds are sent one after the other: they use one account. */
export class RefundQueue {
  #last: Promise<unknown> = Promise.resolve()

  add<Result>(send: () => Promise<Result>): Promise<Result> {
    const sent = this.#last.then(send)
    this.#last = sent.catch(() => undefined)
    return sent
  }
}
