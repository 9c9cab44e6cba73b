import { readAnswer } from '../ledger/answers.ts'
import type { Claim, Desk } from '../ledger/claim.ts'
import type { Entry, Receipt, StoredAnswer } from '../ledger/entry.ts'
import type { Offer, OfferTerms, Payment, Refusal, Verification } from '../protocols/protocol.ts'
import type { ConnectedBuyers } from './delivery.ts'

/** What purchases need besides the payment: the same for every request of a revision. */
export interface PurchaseDeps extends Desk {
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
  readonly lease: Claim
}

/** How a purchase ended for the one who sent it; what was charged follows from the kind. */
export type PurchaseResult =
  | Answered
  /** Not charged: the payment cannot be taken. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Not charged: the work was done and the settlement has definitely failed. */
  | { readonly kind: 'settlementFailed'; readonly entry: Entry; readonly refusal: Refusal }
  /** Not charged: the work failed. */
  | { readonly kind: 'failed'; readonly fault: unknown }
  /** Charged before the work, which failed: the same payment has it run again without a charge. */
  | {
      readonly kind: 'paidUnfulfilled'
      readonly entry: Entry
      readonly receipt: Receipt
      readonly fault: unknown
    }
  /** The payment, or its identifier, belongs to something else. */
  | {
      readonly kind: 'replayRejected'
      readonly entry: Entry
      readonly code: 'payment_reused' | 'identifier_reused'
    }
  /** Not known yet: the same payment will tell. */
  | { readonly kind: 'pending'; readonly id: string }
  /** Not charged: nobody is there to answer. */
  | { readonly kind: 'disconnected' }

/** Charged once, whoever asks again. */
export interface Answered {
  readonly kind: 'answered'
  readonly entry: Entry
  readonly answer: StoredAnswer
  readonly receipt: Receipt
}

/** The result of a record that has both its receipt and its answer, unless that was lost. */
export async function answeredBy(
  { ledger }: Pick<PurchaseDeps, 'ledger'>,
  entry: Entry,
): Promise<Answered | undefined> {
  const { receipt } = entry
  if (receipt === undefined) return undefined
  const answer = await readAnswer(ledger.answers, entry)
  return answer === undefined ? undefined : { kind: 'answered', entry, answer, receipt }
}

/** Whether a settled payment is still answered again. */
export function isRedeliverable({ receipt, settledAt, redeliver, createdAt }: Entry, now: number): boolean {
  return receipt !== undefined && now - (settledAt ?? createdAt) < redeliver
}
