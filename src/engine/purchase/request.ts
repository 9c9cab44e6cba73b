import { ERRORS, Failure, InvalidParameter, type Charged, type ErrorCode } from '../errors.ts'
import type { JsonObject } from '../json.ts'
import type { PaymentLease, LeaseContext } from '../ledger/lease.ts'
import { nextCheckAt, LedgerError, chargeStatus } from '../ledger/payment-lifecycle.ts'
import type { PaymentRecord, StoredAnswer, Receipt } from '../ledger/payment-record.ts'
import type { Offer, OfferTerms, Payment, Verification, Refusal } from '../protocols/protocol.ts'

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

/** How a purchase ended for the one who sent it; what was charged follows from the kind. */
export type PurchaseResult =
  | Answered
  /** Not charged: the payment cannot be taken. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Not charged: the work was done and the settlement has definitely failed. */
  | { readonly kind: 'settlementFailed'; readonly entry: PaymentRecord; readonly refusal: Refusal }
  /** Not charged: the work failed. */
  | { readonly kind: 'failed'; readonly fault: unknown }
  /** Charged before the work, which failed: the same payment has it run again without a charge. */
  | ({ readonly kind: 'paidUnfulfilled'; readonly fault: unknown } & Paid)
  /** The payment, or its identifier, belongs to something else. */
  | {
      readonly kind: 'replayRejected'
      readonly entry: PaymentRecord
      readonly code: keyof typeof REJECTED
    }
  /** Not known yet: the same payment will tell. */
  | { readonly kind: 'pending'; readonly id: string }
  /** Not charged: nobody is there to answer. */
  | { readonly kind: 'disconnected' }
  /** Not known: the ledger could not be asked about this payment. */
  | { readonly kind: 'unavailable' }

/** Charged once, however often it is asked for. */
export interface Answered extends Paid {
  readonly kind: 'answered'
  readonly answer: StoredAnswer
}

/** A record and the proof that its money has moved. */
export interface Paid {
  readonly entry: PaymentRecord
  readonly receipt: Receipt
}

const PAYMENT_PROBLEMS = 'https://paymentauth.org/problems/'

/** Failures the Payment authentication scheme has a problem type for; its clients tell them apart by it. */
const PAYMENT_TYPES: Partial<Record<ErrorCode, string>> = {
  payment_required: 'payment-required',
  malformed_credential: 'malformed-credential',
  invalid_challenge: 'invalid-challenge',
  payment_expired: 'payment-expired',
  method_unsupported: 'method-unsupported',
  multiple_payments: 'bad-request',
}

/** URI of a failure’s kind. Every 402 has one of the scheme, whichever protocol the payment came by. */
export function problemType(code: ErrorCode): string {
  const type = PAYMENT_TYPES[code] ?? (ERRORS[code].status === 402 ? 'verification-failed' : undefined)
  return type === undefined ? `/docs/errors#${code}` : PAYMENT_PROBLEMS + type
}

/** RFC 9457 problem with the service's own members: what happened, what was charged, what to do. */
export function problemMembers(code: ErrorCode, detail: string, charged: Charged): JsonObject {
  const { status, title, hint, retryable } = ERRORS[code]
  return { type: problemType(code), title, status, detail, code, hint, charged, retryable }
}

/** What is sent for a purchase, in whichever protocol the request came. */
export type PurchaseReply =
  | Answered
  /** Another payment is asked for; `failed`: the record of one that could not be settled after the work. */
  | { readonly kind: 'offer'; readonly refusal: Refusal; readonly failed?: PaymentRecord }
  /** The handler has failed; `paid`: after the charge. */
  | {
      readonly kind: 'fault'
      readonly fault: Failure | InvalidParameter
      readonly charged: 'no' | 'yes'
      readonly paid?: Paid
    }
  | PurchaseProblem

export interface PurchaseProblem {
  readonly kind: 'problem'
  readonly code: ErrorCode
  readonly detail: string
  readonly charged: Charged
  /** Public id of the payment. With `payment_pending`, its state is at `/payments/{id}`. */
  readonly payment?: string
  /** Seconds. */
  readonly retryAfter?: number
}

export function replyTo(deps: FaultDeps, result: PurchaseResult): PurchaseReply {
  const kind = 'problem'
  switch (result.kind) {
    case 'answered':
      return result
    case 'settlementFailed':
      return { kind: 'offer', refusal: result.refusal, failed: result.entry }
    case 'paidUnfulfilled': {
      const fault = toPublicError(deps, result.fault, 'yes')
      const { refund } = result.entry
      const told = refund !== undefined && fault instanceof Failure ? withRefund(fault) : fault
      return { kind: 'fault', fault: told, charged: 'yes', paid: result }
    }
    case 'failed':
      return { kind: 'fault', fault: toPublicError(deps, result.fault, 'no'), charged: 'no' }
    case 'refused': {
      const { code, detail, retryAfter = 5 } = result.refusal
      const { status, retryable } = ERRORS[code]
      if (status === 402) return { kind: 'offer', refusal: result.refusal }
      return { kind, code, detail, charged: 'no', ...(retryable ? { retryAfter } : {}) }
    }
    case 'replayRejected': {
      const { code, entry } = result
      const reason = REJECTED[code]
      const detail = entry.refund === undefined ? reason.detail : REFUNDED
      return { kind, code: reason.code, detail, charged: chargeStatus(entry), payment: entry.id }
    }
    case 'pending': {
      const detail = 'whether the payment has settled is not known yet'
      const payment = result.id
      return { kind, code: 'payment_pending', detail, charged: 'unknown', payment, retryAfter: 2 }
    }
    case 'disconnected':
      return { kind, code: 'payment_pending', detail: 'the request was given up', charged: 'no' }
    case 'unavailable': {
      const detail = 'the record of payments cannot be reached now'
      return { kind, code: 'ledger_unavailable', detail, charged: 'unknown', retryAfter: 2 }
    }
  }
}

/** Every network or facilitator that the price could be paid through has been withdrawn. */
export const NO_OFFER = new Failure('not_configured', 'no way to pay is offered at present', {
  retryAfter: 60,
})

/** For senders of a payment, or its identifier, that was used for something else. */
const REJECTED = {
  payment_reused: {
    code: 'payment_reused',
    detail:
      'this payment was used before, for another request or for an answer that was delivered; it is charged once at most',
  },
  idempotency_conflict: {
    code: 'idempotency_conflict',
    detail: 'this payment-identifier belongs to another request of the same payer; nothing was charged now',
  },
  body_differs: {
    code: 'idempotency_conflict',
    detail: 'this payment was used before, with another body or other parameters; nothing was charged now',
  },
} as const

const REFUNDED =
  'this payment was charged for work that fails whenever it is run: its money goes back to the payer, and it buys nothing'

/** `refund`: the buyer need not send the payment again. */
function withRefund(fault: Failure): Failure {
  const { code, detail, retryAfter, extra, cause } = fault
  const options = { extra: { ...extra, refund: 'due' }, cause }
  return new Failure(code, detail, retryAfter === undefined ? options : { ...options, retryAfter })
}

export interface FaultDeps {
  /** Called with every failure nobody has foreseen. */
  readonly report: (fault: unknown) => void
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
    return new Failure('ledger_unavailable', 'the payment could not be recorded; nothing was charged', {
      retryAfter: 2,
    })
  const money = charged === 'no' ? 'nothing was charged' : 'send the same payment again: it is charged once'
  return new Failure('internal', `something went wrong here; ${money}`)
}

/** What a handler says of one of its parameters, in the words of the 422. */
export function toValidationError({ sentence, ctx }: InvalidParameter): {
  readonly type: string
  readonly msg: string
  readonly ctx: InvalidParameter['ctx']
} {
  return { type: 'value_error', msg: `Value error, ${sentence}`, ctx: { ...ctx, error: {} } }
}
