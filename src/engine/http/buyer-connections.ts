import type { ServerResponse } from 'node:http'
import type { ConnectedBuyers, RequestRole } from '../purchase/request.ts'

/** Aborted when the connection closes before the answer is sent. */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.closed) gone.abort()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  return gone.signal
}

/** The connections of buyers to this process, by public id of the payment. */
export class BuyerConnections implements ConnectedBuyers {
  readonly #connections = new Map<string, Map<AbortSignal, RequestRole>>()
  /** What marks the arrival of an answer in the ledger, by public id of the payment, until it is marked. */
  readonly #arrived = new Map<string, Promise<unknown>>()

  connect(payment: string, gone: AbortSignal, role: RequestRole): void {
    const connections = this.#connections.get(payment)
    if (connections === undefined) this.#connections.set(payment, new Map([[gone, role]]))
    else connections.set(gone, role)
  }

  disconnect(payment: string, gone: AbortSignal): void {
    const connections = this.#connections.get(payment)
    connections?.delete(gone)
    if (connections?.size === 0) this.#connections.delete(payment)
  }

  forget(payment: string): void {
    this.#connections.delete(payment)
  }

  arrived(payment: string, marked: Promise<unknown>): void {
    this.forget(payment)
    this.#arrived.set(payment, marked)
    const known = (): boolean => this.#arrived.get(payment) === marked && this.#arrived.delete(payment)
    marked.then(known, known)
  }

  hasArrived(payment: string): boolean {
    return this.#arrived.has(payment)
  }

  has(payment: string): boolean {
    return this.#some(payment, () => true)
  }

  isServed(payment: string): boolean {
    return this.#some(payment, (role) => role === 'served')
  }

  #some(payment: string, fits: (role: RequestRole) => boolean): boolean {
    const connections = this.#connections.get(payment) ?? []
    return Array.from(connections).some(([{ aborted }, role]) => !aborted && fits(role))
  }
}
