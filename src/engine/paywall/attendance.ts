/**
 * Payments whose buyer is on the line in this process, from the reservation until the answer is known to have arrived or
 * every connection is gone. Who is on the line has lost nothing: the same buyer’s next payment for the same thing is
 * another purchase, and does not wait for this one.
 */
export class Attendance {
  readonly #connections = new Map<string, Set<AbortSignal>>()

  /** `gone` is aborted when this connection breaks. */
  begin(payment: string, gone: AbortSignal): void {
    const connections = this.#connections.get(payment)
    if (connections === undefined) this.#connections.set(payment, new Set([gone]))
    else connections.add(gone)
  }

  /** One connection waits no more; without one, none does. */
  end(payment: string, gone?: AbortSignal): void {
    const connections = this.#connections.get(payment)
    if (gone !== undefined) connections?.delete(gone)
    if (gone === undefined || connections?.size === 0) this.#connections.delete(payment)
  }

  has(payment: string): boolean {
    const connections = this.#connections.get(payment)
    return connections !== undefined && Array.from(connections).some(({ aborted }) => !aborted)
  }
}
