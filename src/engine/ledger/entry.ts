import type { Json } from '../json.ts'

/**
 * Where a payment stands. The arrows:
 *
 *     reserved → fulfilled → settling → settled → sent
 *         └─────────┴────────────┴→ voided (usable again)
 *                                └→ unknown → settled | voided
 */
export type State = 'reserved' | 'fulfilled' | 'settling' | 'settled' | 'sent' | 'voided' | 'unknown'

/** The answer a payment bought, as a value: whatever is sent again is rendered anew from it. */
export type StoredAnswer =
  | { readonly kind: 'json'; readonly value: Json }
  | { readonly kind: 'text'; readonly type: string; readonly text: string }

/** A transaction of ours that may move the money: kept before it is broadcast, so that no crash can forget it. */
export interface StoredTransaction {
  readonly hash: string
  /** Erased once the payment is settled. */
  readonly raw?: string
  readonly signer: string
  /** The signer’s account nonce. */
  readonly nonce: number
}

/** Proof that the money moved. */
export interface Receipt {
  readonly transaction: string
  readonly network: string
  readonly payer: string
  /** Atomic units. */
  readonly amount: string
}

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
  readonly seal: string
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
  readonly token: string | undefined
}

/** One payment’s whole story. */
export interface Entry extends Purchase {
  /** Public name of the payment. */
  readonly id: string
  readonly state: State
  /** Process that works on it, until the lease ends. */
  readonly owner: string
  readonly leaseUntil: number
  readonly answer?: StoredAnswer
  readonly transaction?: StoredTransaction
  readonly receipt?: Receipt
  readonly settledAt?: number
  /** How many times a process has taken it up. */
  readonly attempts: number
  readonly createdAt: number
  readonly updatedAt: number
  /** Grows with every change: the guard of compare-and-set. */
  readonly version: number
}
