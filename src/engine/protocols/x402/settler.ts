import type { Dispatch } from '../../ledger/entry.ts'
import type { Journal, Refusal, Settlement } from '../protocol.ts'
import type { Order } from './order.ts'
import type { Movement } from './token.ts'

/** Who carries authorizations out on one network: this process with a signer of its own, or a facilitator. */
export interface Settler {
  /** Whether a contract wallet stands by an order that no key has signed; `digest` is what it stands by. */
  askWallet(order: Order, digest: Uint8Array): Promise<Refusal | undefined>
  /** Whether the token would carry the authorization out now. */
  simulate(order: Order): Promise<Refusal | undefined>
  /** The request with it is done: what `simulate` has reserved is free again. */
  release(order: Order): void
  settle(order: Order, journal: Journal): Promise<Settlement>
  /**
   * Finds out what became of a payment; `dispatch` is what was sent for it, if anything was. `validBefore` and `since`,
   * the time the payment came: milliseconds since the epoch.
   */
  resolve(
    movement: Movement,
    dispatch: Dispatch | undefined,
    validBefore: number,
    since: number,
  ): Promise<Settlement>
}
