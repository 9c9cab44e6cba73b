import { readAnswer } from '../ledger/answers.ts'
import type { Desk } from '../ledger/claim.ts'
import type { Entry, Receipt, StoredAnswer } from '../ledger/entry.ts'
import type { Offer, Payment, Refusal, Verification } from '../protocols/protocol.ts'
import type { Attendance } from './attendance.ts'
import type { RecentOffer } from './prices.ts'

/** What selling needs besides the payment: the same for every request of a revision. */
export interface Paywall extends Desk {
  readonly sleep: (ms: number) => Promise<void>
  /** Milliseconds a settled payment is answered again. */
  readonly redeliver: number
  /** How an operation was offered lately, the present offer among them perhaps. */
  readonly lately: (operation: string) => Promise<readonly RecentOffer[]>
  readonly attendance: Attendance
  /** Told of faults whose request is answered all the same. */
  readonly report: (fault: unknown) => void
}

/** One request with a payment. */
export interface Purchasing {
  readonly payment: Payment
  readonly offer: Offer
  readonly revision: string
  readonly digest: string
  readonly job: Job
  /** Aborted when the client has gone away. */
  readonly gone: AbortSignal
}

/** What the payment buys. */
export interface Job {
  run(order: Order): Promise<StoredAnswer>
  /** Before work that is paid for first: rejects when it would fail for good. `patience`: milliseconds it may take. */
  readonly check: ((patience: number) => Promise<void>) | undefined
  /** Of a handler that stores something: decides what becomes of it once the payment is decided. */
  readonly store: Store | undefined
}

export interface Order {
  /** Public id of the payment: a second run for it takes the place of the first. */
  readonly payment: string
  readonly payer: string
  readonly account: Verified['account']
  /** Milliseconds the work may take. */
  readonly patience: number
}

/** Both may be called again for the same payment, also by another process, and for one nothing was prepared for. */
export interface Store {
  commit(payment: string): Promise<void>
  abort(payment: string): Promise<void>
}

export type Verified = Extract<Verification, { readonly kind: 'verified' }>

/** How a payment ended for the one who sent it; what was charged follows from the kind. */
export type Outcome =
  | Delivered
  /** Not charged: the payment cannot be taken. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Not charged: the work was done and the settlement has definitely failed. */
  | { readonly kind: 'unsettled'; readonly entry: Entry; readonly refusal: Refusal }
  /** Not charged: the work failed. */
  | { readonly kind: 'failed'; readonly fault: unknown }
  /** Charged before the work, which failed: the same payment has it run again without a charge. */
  | { readonly kind: 'owed'; readonly entry: Entry; readonly receipt: Receipt; readonly fault: unknown }
  /** The payment, or its identifier, belongs to something else. */
  | {
      readonly kind: 'reused'
      readonly entry: Entry
      readonly code: 'payment_reused' | 'identifier_reused'
    }
  /** Not known yet: the same payment will tell. */
  | { readonly kind: 'pending'; readonly id: string }
  /** Not charged: nobody is there to answer. */
  | { readonly kind: 'abandoned' }

/** Charged once, whoever asks again. */
export interface Delivered {
  readonly kind: 'delivered'
  readonly entry: Entry
  readonly answer: StoredAnswer
  readonly receipt: Receipt
}

/** The outcome of an entry that has both its receipt and its answer, unless that was lost. */
export async function deliverable(
  { ledger }: Pick<Paywall, 'ledger'>,
  entry: Entry,
): Promise<Delivered | undefined> {
  const { receipt } = entry
  if (receipt === undefined) return undefined
  const answer = await readAnswer(ledger.answers, entry)
  return answer === undefined ? undefined : { kind: 'delivered', entry, answer, receipt }
}

/** Whether a settled payment is still answered again. */
export function isRemembered({ receipt, settledAt, redeliver, createdAt }: Entry, now: number): boolean {
  return receipt !== undefined && now - (settledAt ?? createdAt) < redeliver
}
