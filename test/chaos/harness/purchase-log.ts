import type { Reorganization } from './reorganization.ts'
import type { ChaosRoute } from './routes.ts'

/** One purchase that a buyer wants to make once, and everything the buyer knows about it. */
export interface Purchase {
  /** Address of the wallet. */
  readonly buyer: string
  readonly route: ChaosRoute
  readonly n: number
  /** Payment headers signed for it, by payment reference: a charge for any of them is a charge for this purchase. */
  readonly payments: Map<string, string>
  /** Requests and responses, for people who read a finding. */
  readonly events: string[]
  answer: Answer | undefined
}

/** The answer to a purchase, and how it arrived. */
export interface Answer {
  /** Base address of the process. */
  readonly from: string
  readonly requestedAt: number
  readonly receivedAt: number
  /** Public id of the payment, from the response header. */
  readonly payment: string | null
  /** Transaction of the receipt. */
  readonly transaction: string | undefined
  /** Number of the handler run. */
  readonly run: unknown
}

/** A kill, and for how long its target was unavailable. */
export interface Kill {
  /** Base address of a process, or `store`. */
  readonly target: string
  readonly from: number
  readonly until: number
}

/** What all buyers have seen. */
export interface PurchaseLog {
  readonly purchases: Purchase[]
  readonly kills: Kill[]
  readonly reorganizations: Reorganization[]
  readonly statuses: Map<number, number>
  /** Requests without a complete response. */
  cutOff: number
  /** Answers for other arguments than those sent. */
  wrongAnswers: number
}

export function openPurchaseLog(): PurchaseLog {
  return { purchases: [], kills: [], reorganizations: [], statuses: new Map(), cutOff: 0, wrongAnswers: 0 }
}
