import type { Readable } from 'node:stream'
import {
  type Charged,
  type ErrorCode,
  ERRORS,
  Failure,
  InvalidParameter,
  LedgerError,
  LedgerLostError,
} from '../errors.ts'
import type { Operation } from '../catalog/catalog.ts'
import type { Arguments } from '../handler.ts'
import type { JsonObject } from '../json.ts'
import type { PaymentLease, LeaseContext } from '../ledger/lease.ts'
import { nextCheckAt } from '../ledger/payment-lifecycle.ts'
import type { AnswerHead, PaymentRecord, StoredAnswer, Receipt } from '../ledger/payment-record.ts'
import type { Offer, OfferTerms, Payment, Verification, Refusal } from '../protocols/protocol.ts'

/** What purchases need besides the payment: the same for every request of a revision. */
export interface PurchaseDeps extends LeaseContext {
  readonly sleep: (ms: number) => Promise<void>
  /** Milliseconds in which a settled payment is answered again. */
  readonly redeliver: number
  /** Denied payers, in lower case. */
  readonly denied: ReadonlySet<string>
  /** Recent offers of an operation, possibly including the present one. */
  readonly recentOffers: (operation: Operation, args: Arguments) => Promise<readonly OfferTerms[]>
  readonly buyers: ConnectedBuyers
  /** Aborted when this process ends: open streams are cut off, and another process may run them again. */
  readonly stopping: AbortSignal
  /** Called with errors of requests that are answered anyway. */
  readonly report: (fault: unknown) => void
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
  run(call: HandlerCall): Promise<StoredAnswer | OpenStream>
  /** Runs before upfront settlement: rejects when the work would fail. `timeLeft`: its limit in milliseconds. */
  readonly preflight: ((timeLeft: number) => Promise<void>) | undefined
  /** The store of a handler that writes: decides about its pending write after the payment. */
  readonly store: Store | undefined
}

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
}

/**
 * Payments whose buyer is connected to this process, from the reservation until the answer is known to have arrived or
 * every connection is gone. A connected buyer has lost nothing: the next payment for the same thing is another purchase,
 * and does not wait for this one.
 */
export interface ConnectedBuyers {
  /** `gone` is aborted when this connection closes. */
  connect(payment: string, gone: AbortSignal): void
  disconnect(payment: string, gone: AbortSignal): void
  /** Removes all connections of this payment. */
  forget(payment: string): void
  has(payment: string): boolean
}

/** Records the delivery: from now on a copy needs more than the signature. */
export function markReceived(desk: LeaseContext, entry: PaymentRecord): Promise<void> {
  return change(desk, entry, (current) => ({ ...current, state: 'sent' }))
}

/** Records that the delivery is unconfirmed and no request works on it: the buyer need not wait. */
export function markUndelivered(desk: LeaseContext, entry: PaymentRecord): Promise<void> {
  return change(desk, entry, (current) => ({ ...current, leaseUntil: desk.now() }))
}

/** Without effect when the record was taken over since the delivery, or is marked already. */
async function change(
  { ledger, now }: LeaseContext,
  delivered: PaymentRecord,
  mark: (current: PaymentRecord) => PaymentRecord,
): Promise<void> {
  const replace = async (current: PaymentRecord | undefined): Promise<boolean> => {
    if (current?.receipt === undefined || current.attempts !== delivered.attempts || current.state === 'sent')
      return false
    const marked = { ...mark(current), updatedAt: now(), version: current.version + 1 }
    return ledger.replace(current, { ...marked, due: nextCheckAt(marked) })
  }
  // As a rule nobody has changed it since, and it need not be read.
  if (!(await replace(delivered))) await replace(await ledger.get(delivered.key))
}

/** The result of a purchase; its kind determines what was charged. */
export type PurchaseResult =
  | Answered
  /** Not charged: the payment is not acceptable. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Not charged: the work was done and the settlement has definitely failed. */
  | { readonly kind: 'settlementFailed'; readonly entry: PaymentRecord; readonly refusal: Refusal }
  /** Not charged: the work failed. */
  | { readonly kind: 'failed'; readonly fault: unknown }
  /** Charged before the work, which failed: the same payment runs it again without a charge. */
  | ({ readonly kind: 'paidUnfulfilled'; readonly fault: unknown } & Paid)
  /** The payment or its identifier belongs to another purchase. */
  | {
      readonly kind: 'replayRejected'
      readonly entry: PaymentRecord
      readonly code: 'payment_reused' | 'idempotency_conflict' | 'body_differs'
    }
  /** Unknown yet: ask with the same payment again. */
  | { readonly kind: 'pending'; readonly id: string }
  /** Not charged: the buyer has disconnected. */
  | { readonly kind: 'disconnected' }
  /** Unknown: the ledger is unavailable. */
  | { readonly kind: 'unavailable'; readonly code: 'ledger_unavailable' | 'ledger_lost' }

/** Charged once, however often it is requested. */
export interface Answered extends Paid {
  readonly kind: 'answered'
  readonly answer: StoredAnswer | StreamedAnswer
}

/** A record with the proof that its money has moved. */
export interface Paid {
  readonly entry: PaymentRecord
  readonly receipt: Receipt
}

const PAYMENT_PROBLEMS = 'https://paymentauth.org/problems/'

/** Errors with a problem type of the Payment authentication scheme, by which its clients distinguish them. */
const PAYMENT_TYPES: Partial<Record<ErrorCode, string>> = {
  payment_required: 'payment-required',
  malformed_credential: 'malformed-credential',
  invalid_challenge: 'invalid-challenge',
  payment_expired: 'payment-expired',
  method_unsupported: 'method-unsupported',
  multiple_payments: 'bad-request',
}

/** URI of an error's type. Every 402 has one of the scheme, whatever its protocol. */
function problemType(code: ErrorCode): string {
  const type = PAYMENT_TYPES[code] ?? (ERRORS[code].status === 402 ? 'verification-failed' : undefined)
  return type === undefined ? `/docs/errors#${code}` : PAYMENT_PROBLEMS + type
}

/** RFC 9457 problem with the service's own members: what happened, what was charged, what to do. */
export function problemMembers(code: ErrorCode, detail: string, charged: Charged): JsonObject {
  const { status, title, hint, retryable } = ERRORS[code]
  return { type: problemType(code), title, status, detail, code, hint, charged, retryable }
}

/** Every network or facilitator that the price could be paid through has been withdrawn. */
export const NO_OFFER = new Failure('not_configured', 'no way to pay is offered at present', {
  retryAfter: 60,
})

export interface FaultDeps {
  /** Called with every failure nobody has foreseen. */
  readonly report: (fault: unknown) => void
}

/** Why the ledger takes no payment, for callers. */
export function ledgerCode(fault: LedgerError): 'ledger_unavailable' | 'ledger_lost' {
  return fault instanceof LedgerLostError ? 'ledger_lost' : 'ledger_unavailable'
}

/** What a handler has thrown, as far as the caller may know it. */
export function toPublicError(
  { report }: FaultDeps,
  fault: unknown,
  charged: 'no' | 'yes',
): Failure | InvalidParameter {
  if (fault instanceof Failure || fault instanceof InvalidParameter) return fault
  report(fault)
  if (fault instanceof LedgerError)
    return new Failure(ledgerCode(fault), 'the payment could not be recorded; nothing was charged', {
      retryAfter: 2,
    })
  const money = charged === 'no' ? 'nothing was charged' : 'send the same payment again: it is charged once'
  return new Failure('internal', `something went wrong here; ${money}`)
}

/** An InvalidParameter of a handler in the form of the 422. */
export function toValidationError({ sentence, ctx }: InvalidParameter): {
  readonly type: string
  readonly msg: string
  readonly ctx: InvalidParameter['ctx']
} {
  return { type: 'value_error', msg: `Value error, ${sentence}`, ctx: { ...ctx, error: {} } }
}
