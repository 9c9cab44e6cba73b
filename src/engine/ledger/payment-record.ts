import type { ErrorCode } from '../base/errors.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { PricePart } from '../base/price-part.ts'
import type { SuccessStatus } from '../base/success-status.ts'

/**
 * The state of a payment. Transitions, for settlement after the work:
 *
 *     reserved → fulfilled → settling → settled → sent
 *         └─────────┴────────────┴→ voided (usable again)
 *                                └→ unknown → settled | voided
 *
 * A settled payment whose block is undone is `unknown` again (`undone`), until another block contains it or none can.
 *
 * and for work that is paid for first (`settle: upfront`), where a settled payment without an answer is owed one:
 *
 *     reserved → settling → settled → fulfilled → sent
 */
export type State = 'reserved' | 'fulfilled' | 'settling' | 'settled' | 'sent' | 'voided' | 'unknown'

/**
 * When the record of a purchase is stored. `with the first change`: for what moves nothing before it is charged, and has a lock
 * that no two purchases hold at once. The usual purchase is then one commit.
 */
export type Reserved = 'before the work' | 'with the first change'

/** Whether settlement comes after or before the work, in the terms of the catalog. */
export type SettleOrder = 'after' | 'upfront'

/** The purchased answer as a value: each redelivery is rendered from it. */
export type StoredAnswer =
  | { readonly kind: 'json'; readonly status?: SuccessStatus | undefined; readonly value: Json }
  | (AnswerHead & { readonly kind: 'text'; readonly text: string })
  | (AnswerHead & { readonly kind: 'bytes'; readonly bytes: Uint8Array })

export interface AnswerHead {
  /** Of the HTTP response; undefined: 200. */
  readonly status?: SuccessStatus | undefined
  /** Media type. */
  readonly type: string
  /** Its response headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Location and digest of an answer in the answer store: one that differs counts as missing. */
export interface AnswerReference {
  readonly kind: StoredAnswer['kind']
  /** Of the HTTP response; undefined: 200. */
  readonly status?: SuccessStatus | undefined
  readonly mediaType: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Bytes. */
  readonly size: number
  /** SHA-256 of the payment id and the bytes, base64url. */
  readonly digest: string
  /** The attempt that has written it: a late process writes to another place. */
  readonly attempt: number
}

/**
 * What was sent, or is about to be, to move the money: kept before it is sent, so that no crash can forget it. What
 * works as a payment order (`raw`, `request`) is erased once the signed payment has expired and its block is final: until
 * then a reorganization may undo the settlement, and it is sent again.
 */
export type Dispatch = OwnTransaction | PayerTransaction | FacilitatorRequest | HandedOver

/** A transaction of one of our signers. */
export interface OwnTransaction {
  readonly kind: 'own'
  readonly hash: string
  readonly raw?: string
  readonly signer: string
  /** The signer’s account nonce. */
  readonly nonce: number
  /** Payments of a batch, whose bytes are kept once for all of them (`keepBatch`) instead of as `raw`. */
  readonly members?: number
}

/** A transaction that the payer has signed and we broadcast. */
export interface PayerTransaction {
  readonly kind: 'payer'
  readonly hash: string
  readonly raw?: string
}

/** A settlement by a facilitator: the same request may be sent to the same facilitator again, and to no other. */
export interface FacilitatorRequest {
  readonly kind: 'facilitator'
  readonly url: string
  /** Body of POST /settle. */
  readonly request?: string
}

/**
 * A call that only an account of another process may send. While it is recorded, nothing was sent: that process records
 * its transaction in its place first.
 */
export interface HandedOver {
  readonly kind: 'handed over'
  /** The account. */
  readonly signer: string
  /** Calldata. */
  readonly raw?: string
}

/** A block, by what a reorganization changes. */
export interface BlockReference {
  readonly number: number
  readonly hash: string
}

/** Proof that the money moved. */
export interface Receipt {
  /** Empty for a charge that has no transaction of its own. */
  readonly transaction: string
  readonly network: string
  readonly payer: string
  /** What was charged, in atomic units. */
  readonly amount: string
  /** What the scheme tells the buyer besides. */
  readonly extra?: JsonObject
  /** What our account paid for it, in 18 decimals of the coin (wei) on every network; in a batch, its share. */
  readonly gasCost?: string
  /** The block of the transaction, until it is final. Undefined too when no node of ours has shown it. */
  readonly block?: BlockReference
}

/** A refund by `ratecard payments refund`. From then on the payment buys nothing. */
export type Refund =
  /** Charged, and the handler fails at every run; or its buyer was told that nothing was charged. */
  | { readonly kind: 'due'; readonly reason: ErrorCode }
  /** Recorded before it is broadcast: until it is known to be impossible, the same bytes are sent again and no others. */
  | (RefundTransaction & { readonly kind: 'sending' })
  /** A block contains it. Until it expires the same bytes are sent again if that block is undone. */
  | (RefundTransaction & { readonly kind: 'sent' })

/** The transaction of a refund; the chain shows only `hash` and `sender` of one that the ledger has forgotten. */
interface RefundTransaction {
  readonly hash: string
  readonly raw?: string
  /** The account that has signed it. */
  readonly sender?: string
  /** The sender’s account nonce. */
  readonly nonce?: number
  /** Milliseconds since the epoch; no block at or after it can carry the refund out. */
  readonly validBefore?: number
  /** When it was first seen in a block, in milliseconds since the epoch. */
  readonly sentAt?: number
}

/** What a payment buys, fixed when it is reserved. */
export interface Purchase {
  /** The signed fields that make the payment unique, not header bytes: a re-encoded copy is the same payment. */
  readonly key: string
  readonly protocol: string
  /** How it is paid within the protocol: the scheme of x402, the intent of MPP. */
  readonly scheme: string
  readonly network: string
  readonly asset: string
  /**
   * As its scheme spells it, always in the same way: equal texts are one payer, and everything that is kept for a payer
   * is kept under this text.
   */
  readonly payer: string
  readonly payee: string
  /** Digest of all signed fields: another authorization with the same key is another payment. */
  readonly authorizationHash: string
  /** The most that may be charged, as the payer has signed it, in atomic units. */
  readonly authorizedAmount: string
  /** What is charged, in atomic units: the authorised amount until the work is done, and from then on what it costs. */
  readonly amount: string
  /** Milliseconds since the epoch; the authorization cannot be used at or after it. */
  readonly validBefore: number
  readonly operation: string
  /** Digest of the handler’s arguments. */
  readonly digest: string
  /** Revision of the catalog that made the offer. */
  readonly revision: string
  /** Random token of the challenge, known to the buyer only; undefined when the client does not echo it. */
  readonly redeliveryToken: string | undefined
  readonly settle: SettleOrder
  /** Milliseconds after settlement in which the same payment is answered again; 0 afterwards. */
  readonly redeliver: number
  /** Key of this payer, operation and arguments: finds recent equal purchases of a buyer. */
  readonly buyerKey: string
  /** Key of this payer’s payment-identifier: unique in a ledger. */
  readonly identifier: string | undefined
  /** Absolute URL of the call, for its signed receipts; undefined when none are signed. */
  readonly resource?: string | undefined
}

/** The record of one payment. */
export interface PaymentRecord extends Purchase {
  /** Public id of the payment. */
  readonly id: string
  readonly state: State
  /** Process that works on it until the lease ends. */
  readonly owner: string
  readonly leaseUntil: number
  /** When it must be processed: to be finished, or for the deletion of its answer. Undefined: never again. */
  readonly due: number | undefined
  readonly answer?: AnswerReference
  /** Digest of an answer that is not kept any more, for its signed receipts. */
  readonly answerDigest?: string
  readonly dispatch?: Dispatch
  readonly receipt?: Receipt
  readonly settledAt?: number
  /** When the answer was first known to have arrived. */
  readonly deliveredAt?: number
  /** When the block of the receipt, or `failedIn`, is looked at again; undefined once it is final. */
  readonly lookAt?: number
  /** A reorganization has undone the settlement. The state it had then, and the transaction. */
  readonly undone?: { readonly state: State; readonly transaction: string }
  /**
   * The newest block that shows that what was sent has failed. While it can be undone, a payment whose buyer was told that
   * nothing was charged may be carried out after all.
   */
  readonly failedIn?: BlockReference
  readonly refund?: Refund
  /** Whether the handler has prepared a write that waits for its commit or abort. */
  readonly pendingWrite?: true
  /** What a price that was known after the work consists of. */
  readonly usage?: readonly PricePart[]
  /** Number of streams started for it. */
  readonly runs?: number
  /** How often a process has taken it over. */
  readonly attempts: number
  readonly createdAt: number
  readonly updatedAt: number
  /** Grows with every change, for compare-and-set. */
  readonly version: number
}
