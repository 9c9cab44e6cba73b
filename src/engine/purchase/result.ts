import type { Refusal } from '../base/errors.ts'
import type { StoredAnswer } from '../ledger/payment-record.ts'
import type { PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import type { StreamedAnswer } from './request.ts'

/** The result of a purchase; its kind determines what was charged. */
export type PurchaseResult =
  | Answered
  | Streaming
  /** Not charged: the payment is not acceptable. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Not charged: the work was done and the settlement has definitely failed. */
  | { readonly kind: 'settlementFailed'; readonly record: PaymentRecord; readonly refusal: Refusal }
  /** Not charged: the work failed. */
  | { readonly kind: 'failed'; readonly fault: unknown }
  /** Charged before the work, which failed: the same payment runs it again without a charge. */
  | ({ readonly kind: 'paidUnfulfilled'; readonly fault: unknown } & Paid)
  /** The payment or its identifier belongs to another purchase. */
  | {
      readonly kind: 'replayRejected'
      readonly record: PaymentRecord
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

/** A stream on credit: charged at its end, once. */
export interface Streaming {
  readonly kind: 'streaming'
  readonly record: PaymentRecord
  readonly answer: StreamedAnswer
}

/** A record with the proof that its money has moved. */
export interface Paid {
  readonly record: PaymentRecord
  readonly receipt: Receipt
}
