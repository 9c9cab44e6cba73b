import type { Tracing } from '../base/tracing.ts'
import type { Readable } from 'node:stream'
import type { Operation, PayerLimit, StreamCredit } from '../catalog/catalog.ts'
import type { Metered } from '../catalog/price/meter.ts'
import type { Arguments } from '../handler.ts'
import type { PaymentLease, LeaseContext } from '../ledger/lease.ts'
import type { AnswerHead, StoredAnswer } from '../ledger/payment-record.ts'
import type { PaymentLocks } from './payment-locks.ts'
import type { ReceiptSigner } from '../receipts/receipt-signer.ts'
import type { AnswerEnd } from './usage-documents.ts'
import type { Offer, OfferTerms, Payment, Verification } from '../payment/payment.ts'

/** What purchases need besides the payment: the same for every request of a revision. */
export interface PurchaseDeps extends LeaseContext {
  readonly sleep: (ms: number) => Promise<void>
  /** Milliseconds in which a settled payment is answered again. */
  readonly redeliver: number
  /** Denied payers, as their protocols spell them. */
  readonly denied: ReadonlySet<string>
  readonly payerLimit: PayerLimit | undefined
  readonly streamCredit: StreamCredit
  /** Undefined: no receipts are signed. */
  readonly receipts?: ReceiptSigner | undefined
  /** Recent offers of an operation, possibly including the present one. */
  readonly recentOffers: (operation: Operation, args: Arguments) => Promise<readonly OfferTerms[]>
  readonly buyers: ConnectedBuyers
  readonly locks: PaymentLocks
  /** Aborted when this process ends: open streams are cut off, and another process may run them again. */
  readonly stopping: AbortSignal
  /** Called with errors of requests that are answered anyway. */
  readonly report: (fault: unknown) => void
  readonly tracing?: Tracing | undefined
}

/** One request with a payment. */
export interface PurchaseRequest {
  readonly payment: Payment
  readonly offer: Offer
  /** Revision of the catalog that makes the offer. */
  readonly revision: string
  readonly args: Arguments
  /** Digest of the operation’s arguments. */
  readonly digest: string
  /** The buyer's identifier of this purchase: two payments with the same one are charged once. */
  readonly identifier: string | undefined
  readonly fulfillment: Fulfillment
  /** Aborted when the client disconnects. */
  readonly gone: AbortSignal
}

/** What the payment buys. */
export interface Fulfillment {
  run(call: HandlerCall): Promise<StoredAnswer | OpenStream | MeteredAnswer | MeteredStream>
  /** Runs before upfront settlement: rejects when the work would fail. `timeLeft`: its limit in milliseconds. */
  readonly preflight: ((timeLeft: number) => Promise<void>) | undefined
  /** The store of a handler that writes: decides about its pending write after the payment. */
  readonly store: Store | undefined
}

/** An answer whose price is known now. */
export interface MeteredAnswer extends Metered {
  readonly kind: 'metered'
  readonly answer: StoredAnswer
}

/** A stream whose price is known at its end. */
export interface MeteredStream {
  readonly kind: 'metered stream'
  readonly stream: OpenStream
  /** `took`: milliseconds that its source has taken. */
  price(end: AnswerEnd, took: number): Metered
  /** The price when it has broken off. `reason`: for the operator. */
  priceOfPart(reason: string): Metered
}

/**
 * How an answer that may be a stream with a metered price is sent: whole, once it is paid; or in pieces while they come,
 * `until` this time in milliseconds since the epoch.
 */
export type Delivery = 'whole' | { readonly until: number }

/** A stream of which nothing has been read yet. */
export interface OpenStream extends AnswerHead {
  readonly kind: 'stream'
  /** Rejects when the stream is cut off, too large, or idle for too long. */
  readonly chunks: AsyncIterator<Uint8Array, void>
  /** Cancels the work; without effect after its end. */
  readonly close: () => void
}

/** A stream that is sent to the buyer and recorded. */
export interface StreamedAnswer extends AnswerHead {
  readonly kind: 'stream'
  readonly body: Readable
  /** Resolves when the record is complete, or the stream has ended without one. */
  readonly recorded: Promise<void>
}

export interface HandlerCall {
  /** Public id of the payment, the idempotency key: a second run replaces the first. */
  readonly payment: string
  readonly payer: string
  readonly account: Verified['account']
  /** Milliseconds that the work may take. */
  readonly timeLeft: number
  readonly delivery: Delivery
}

/** Both may be called again for the same payment, also by another process and without a prepared write. */
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

/** A request that holds the lease of a payment record. */
export interface LeasedPurchase extends VerifiedPurchase {
  /** The lease of the request’s payment, or of an earlier one by the same buyer. */
  readonly lease: PaymentLease
  /** The stream of work that started before its payment is settled. */
  readonly opened?: OpenStream
  /** Its answer was sent: its buyer owes what it costs, also after having left. */
  readonly sent?: 'on credit'
}

/**
 * Payments whose buyer is connected to this process, from the reservation until the answer is known to have arrived or
 * every connection is gone. A connected buyer has lost nothing: the next payment for the same thing is another purchase,
 * and does not wait for this one.
 */
export interface ConnectedBuyers {
  /** `gone` is aborted when this connection closes. Connecting again changes the role. */
  connect(payment: string, gone: AbortSignal, role: RequestRole): void
  disconnect(payment: string, gone: AbortSignal): void
  /** Removes all connections of this payment. */
  forget(payment: string): void
  /** Removes them because the answer has arrived; the ledger says so once `marked` has resolved. */
  arrived(payment: string, marked: Promise<unknown>): void
  /** Whether the answer has arrived and the ledger may not say so yet. */
  hasArrived(payment: string): boolean
  has(payment: string): boolean
  /** Whether the request that works on the payment, or sends its answer, has a connected buyer. */
  isServed(payment: string): boolean
}

/** `served`: the request works on the payment, or sends its answer. `waiting`: another request or recovery does. */
export type RequestRole = 'served' | 'waiting'
