/**
 * Payments whose buyer is on the line in this process, from the reservation until the answer is known to have arrived or
 * the connection is gone. Who is on the line has lost nothing: the same buyer’s next payment for the same thing is
 * another purchase, and does not wait for this one.
 */
export class Attendance {
  readonly #gone = new Map<string, AbortSignal>()

  begin(payment: string, gone: AbortSignal): void {
    this.#gone.set(payment, gone)
  }

  end(payment: string): void {
    this.#gone.delete(payment)
  }

  has(payment: string): boolean {
    return this.#gone.get(payment)?.aborted === false
  }
}
