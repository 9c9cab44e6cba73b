import type { PaymentLease, LeaseContext } from '../ledger/payment-lease.ts'
import type { PaymentRecord, StoredAnswer } from '../ledger/payment-record.ts'
import { nextCheckAt } from '../ledger/payment-lifecycle.ts'
import type { Offer, OfferTerms, Payment, Verification } from '../protocols/protocol.ts'

/** What purchases need besides the payment: the same for every request of a revision. */
export interface PurchaseDeps extends LeaseContext {
  readonly sleep: (ms: number) => Promise<void>
  /** Milliseconds a settled payment is answered again. */
  readonly redeliver: number
  /** How an operation was offered lately, the present offer among them perhaps. */
  readonly recentOffers: (operation: string) => Promise<readonly OfferTerms[]>
  readonly buyers: ConnectedBuyers
  /** Called with faults whose request is answered all the same. */
  readonly report: (fault: unknown) => void
}

/** One request with a payment. */
export interface PurchaseRequest {
  readonly payment: Payment
  readonly offer: Offer
  /** Of the catalog that makes the offer. */
  readonly revision: string
  /** Digest of what is bought: the operation’s arguments. */
  readonly digest: string
  readonly fulfillment: Fulfillment
  /** Aborted when the client has gone away. */
  readonly gone: AbortSignal
}

/** What the payment buys. */
export interface Fulfillment {
  run(call: HandlerCall): Promise<StoredAnswer>
  /** Before work that is paid for first: rejects when it would fail for good. `timeLeft`: milliseconds it may take. */
  readonly preflight: ((timeLeft: number) => Promise<void>) | undefined
  /** Of a handler that stores something: decides what becomes of it once the payment is decided. */
  readonly store: Store | undefined
}

export interface HandlerCall {
  /** Public id of the payment, the idempotency key: a second run for it takes the place of the first. */
  readonly payment: string
  readonly payer: string
  readonly account: Verified['account']
  /** Milliseconds the work may take. */
  readonly timeLeft: number
}

/** Both may be called again for the same payment, also by another process, and for one nothing was prepared for. */
export interface Store {
  commit(payment: string): Promise<void>
  abort(payment: string): Promise<void>
}

export type Verified = Extract<Verification, { readonly kind: 'verified' }>

/** A request whose payment is signed by its payer. */
export interface VerifiedPurchase {
  readonly deps: PurchaseDeps
  readonly request: PurchaseRequest
  readonly verified: Verified
}

/** A request that works on a payment record, which no other request does. */
export interface LeasedPurchase extends VerifiedPurchase {
  /** On the record of the request’s payment, or of an earlier one by the same buyer. */
  readonly lease: PaymentLease
}

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
export function markReceived(desk: LeaseContext, entry: PaymentRecord): Promise<void> {
  return change(desk, entry, (current) => ({ ...current, state: 'sent' }))
}

/** The answer is not known to have arrived and no request works on it any more: the buyer need not wait. */
export function markUndelivered(desk: LeaseContext, entry: PaymentRecord): Promise<void> {
  return change(desk, entry, (current) => ({ ...current, leaseUntil: desk.now() }))
}

/** Without effect when the entry has been taken up again since it was delivered, or has been marked before. */
async function change(
  { ledger, now }: LeaseContext,
  delivered: PaymentRecord,
  mark: (current: PaymentRecord) => PaymentRecord,
): Promise<void> {
  const current = await ledger.get(delivered.key)
  if (current?.receipt === undefined || current.attempts !== delivered.attempts || current.state === 'sent')
    return
  const marked = { ...mark(current), updatedAt: now(), version: current.version + 1 }
  await ledger.replace(current, { ...marked, due: nextCheckAt(marked) })
}
