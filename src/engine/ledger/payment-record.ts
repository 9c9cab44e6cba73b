import type { ErrorCode } from '../errors.ts'
import type { Json } from '../json.ts'

/**
 * Where a payment stands. The arrows, for work that is paid for when it is done:
 *
 *     reserved → fulfilled → settling → settled → sent
 *         └─────────┴────────────┴→ voided (usable again)
 *                                └→ unknown → settled | voided
 *
 * and for work that is paid for first (`flow: upfront`), where a settled payment without an answer is owed one:
 *
 *     reserved → settling → settled → fulfilled → sent
 */
export type State = 'reserved' | 'fulfilled' | 'settling' | 'settled' | 'sent' | 'voided' | 'unknown'

/** When the money moves: after the work, or before it. The words are x402's. */
export type Flow = 'authorization' | 'upfront'

/** The answer a payment bought, as a value: whatever is sent again is rendered anew from it. */
export type StoredAnswer =
  | { readonly kind: 'json'; readonly value: Json }
  | (AnswerHead & { readonly kind: 'text'; readonly text: string })
  | (AnswerHead & { readonly kind: 'bytes'; readonly bytes: Uint8Array })

interface AnswerHead {
  /** Media type. */
  readonly type: string
  /** Response headers that go with it. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Where an answer is in the answer store, and what it must be: one that differs counts as missing. */
export interface AnswerReference {
  readonly kind: StoredAnswer['kind']
  readonly mediaType: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Bytes. */
  readonly size: number
  /** SHA-256 of the payment id and the bytes, base64url. */
  readonly digest: string
  /** The attempt that has written it: a process that was too late writes to another place. */
  readonly attempt: number
}

/**
 * What was sent, or is about to be, to move the money: kept before it is sent, so that no crash can forget it. What
 * works as a payment order (`raw`, `request`) is erased once the signed payment has expired: until then a
 * reorganisation may undo the settlement, and it is sent again.
 */
export type SettlementAttempt = OwnTransaction | PayerTransaction | FacilitatorRequest

/** A transaction of one of our signers. */
export interface OwnTransaction {
  readonly kind: 'own'
  readonly hash: string
  readonly raw?: string
  readonly signer: string
  /** The signer’s account nonce. */
  readonly nonce: number
}

/** A transaction the payer has signed and we broadcast. */
export interface PayerTransaction {
  readonly kind: 'payer'
  readonly hash: string
  readonly raw?: string
}

/** A settlement asked of a facilitator: the same request may go to the same one again, and to no other. */
export interface FacilitatorRequest {
  readonly kind: 'facilitator'
  readonly url: string
  /** Body of POST /settle. */
  readonly request?: string
}

/** Proof that the money moved. */
export interface Receipt {
  readonly transaction: string
  readonly network: string
  readonly payer: string
  /** Atomic units. */
  readonly amount: string
}

/** Money that goes back to its payer, by `ratecard payments refund`. From then on the payment buys nothing any more. */
export type Refund =
  /** Charged, and the work fails whenever it is run. */
  | { readonly kind: 'due'; readonly reason: ErrorCode }
  /** Recorded before it is broadcast: after a crash the same bytes are sent again. */
  | { readonly kind: 'sending'; readonly hash: string; readonly raw: string; readonly nonce: number }
  | { readonly kind: 'sent'; readonly hash: string }

/** What is bought with a payment, fixed when it is reserved. */
export interface Purchase {
  /** The signed fields that make the payment unique, never header bytes: whatever is re-encoded stays one payment. */
  readonly key: string
  readonly protocol: string
  readonly network: string
  readonly asset: string
  readonly payer: string
  readonly payee: string
  /** Digest of everything that was signed: another authorization under the same key is another payment. */
  readonly authorizationHash: string
  /** Atomic units. */
  readonly amount: string
  /** Milliseconds since the epoch; the authorization cannot be used at or after it. */
  readonly validBefore: number
  readonly operation: string
  /** Digest of the handler’s arguments. */
  readonly digest: string
  /** Revision of the catalog that made the offer. */
  readonly revision: string
  /** Random token of the challenge, which only the buyer has seen; undefined when the client does not echo it. */
  readonly redeliveryToken: string | undefined
  readonly flow: Flow
  /** Milliseconds after its settlement in which the same payment is answered again; 0 once they are over. */
  readonly redeliver: number
  /** Name of "this payer asks for this operation with these arguments": finds what such a buyer has paid for lately. */
  readonly buyerKey: string
  /** Name of "this payer’s payment-identifier": one at a time in a ledger. */
  readonly identifier: string | undefined
}

/** One payment’s whole story. */
export interface PaymentRecord extends Purchase {
  /** Public name of the payment. */
  readonly id: string
  readonly state: State
  /** Process that works on it, until the lease ends. */
  readonly owner: string
  readonly leaseUntil: number
  /** When somebody has to look after it: to finish it, or to forget its answer. Undefined: never again. */
  readonly due: number | undefined
  readonly answer?: AnswerReference
  readonly dispatch?: SettlementAttempt
  readonly receipt?: Receipt
  readonly settledAt?: number
  readonly refund?: Refund
  /** The handler has stored something for this payment, which waits for its commit or abort. */
  readonly pendingWrite?: true
  /** How many times a process has taken it up. */
  readonly attempts: number
  readonly createdAt: number
  readonly updatedAt: number
  /** Grows with every change: the guard of compare-and-set. */
  readonly version: number
}
