import { nextCheckAt } from '../ledger/lifecycle.ts'
import type { Desk } from '../ledger/claim.ts'
import type { Entry } from '../ledger/entry.ts'

/**
 * Payments whose buyer is connected to this process, from the reservation until the answer is known to have arrived or
 * every connection is gone. A connected buyer has lost nothing: the next payment for the same thing is another purchase,
 * and does not wait for this one.
 */
export class ConnectedBuyers {
  readonly #connections = new Map<string, Set<AbortSignal>>()

  /** `gone` is aborted when this connection breaks. */
  connect(payment: string, gone: AbortSignal): void {
    const connections = this.#connections.get(payment)
    if (connections === undefined) this.#connections.set(payment, new Set([gone]))
    else connections.add(gone)
  }

  disconnect(payment: string, gone: AbortSignal): void {
    const connections = this.#connections.get(payment)
    connections?.delete(gone)
    if (connections?.size === 0) this.#connections.delete(payment)
  }

  /** Nobody waits for this payment any more. */
  forget(payment: string): void {
    this.#connections.delete(payment)
  }

  has(payment: string): boolean {
    const connections = this.#connections.get(payment)
    return connections !== undefined && Array.from(connections).some(({ aborted }) => !aborted)
  }
}

/** The answer has arrived: from now on more than the signature is asked for it. */
export function markReceived(desk: Desk, entry: Entry): Promise<void> {
  return change(desk, entry, (current) => ({ ...current, state: 'sent' }))
}

/** The answer is not known to have arrived and nobody sees to it any more: whoever has a right to it need not wait. */
export function markUndelivered(desk: Desk, entry: Entry): Promise<void> {
  return change(desk, entry, (current) => ({ ...current, leaseUntil: desk.now() }))
}

/** Without effect when the entry has been taken up again since it was delivered, or has been marked before. */
async function change(
  { ledger, now }: Desk,
  delivered: Entry,
  mark: (current: Entry) => Entry,
): Promise<void> {
  const current = await ledger.get(delivered.key)
  if (current?.receipt === undefined || current.attempts !== delivered.attempts || current.state === 'sent')
    return
  const marked = { ...mark(current), updatedAt: now(), version: current.version + 1 }
  await ledger.replace(current, { ...marked, due: nextCheckAt(marked) })
}
