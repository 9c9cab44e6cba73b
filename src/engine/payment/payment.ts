import type { ErrorCode, Refusal } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Micros } from '../base/money.ts'
import type { Endpoint } from '../catalog/catalog.ts'
import type { PaymentRecord, Receipt, Reserved } from '../ledger/payment-record.ts'
import type { SchemeStateChange } from '../ledger/scheme-state.ts'
import type { Journal, Settlement } from './settlement.ts'

/** What is for sale at this request. */
export interface Offer extends OfferTerms {
  readonly endpoint: Endpoint
  readonly resource: string
  readonly scope: string
  /** RFC 9530 digest of the request’s body. */
  readonly contentDigest?: string | undefined
}

export interface OfferTerms {
  /** What the call costs, or cost lately. */
  readonly price: Micros
  /** Seconds an x402 payment was to be valid for when it was offered lately; absent: as offered now. */
  readonly timeoutSeconds?: number
}

/** The result of verifying the payer’s signature. */
export type Verification =
  | {
      readonly kind: 'verified'
      /** Always spelt in one way: equal texts are one payer. */
      readonly payer: string
      /** Who signed for the payer. */
      readonly account: 'key' | 'contract'
      /** Milliseconds since the epoch; the money cannot be moved at or after it. */
      readonly validBefore: number
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** What a purchase and its answer ask of the protocol of the payment. */
export interface PaymentProtocol {
  readonly name: string
  /** Milliseconds of work a payment outlives, so that it can be settled afterwards; longer work is paid for first. */
  readonly longestWork: number
  /** Finishes what another process started, for a payment without its header. */
  resolve(record: PaymentRecord): Promise<Settlement>
  /** Whether, for now, only another process can settle what was handed over: it is left alone until its payment is over. */
  isForAnother?(record: PaymentRecord): boolean
  /** Headers of an answer, good or bad by its status, to a payment that has settled. */
  receiptHeaders(record: PaymentRecord, receipt: Receipt, status: number): Readonly<Record<string, string>>
  /** Headers of a 402 given after work, when the settlement has definitely failed. */
  failureHeaders(record: PaymentRecord, code: ErrorCode): Readonly<Record<string, string>>
  readonly tools: ToolReceipts
}

/** What answers to calls of tools say of their payment. */
export interface ToolReceipts {
  /** `_meta` of an answer, good or bad by its status, to a payment that has settled. */
  receipt(record: PaymentRecord, receipt: Receipt, status: number): JsonObject
  /** `_meta` of a refusal after work, when the settlement has definitely failed. */
  failure(record: PaymentRecord, code: ErrorCode): JsonObject
}

/** A payment as its protocol has read it, before anything is known about its payer. */
export interface PaymentTerms {
  readonly protocol: PaymentProtocol
  /** How it is paid within the protocol. */
  readonly scheme: string
  /** Ledger key: the signed fields. */
  readonly key: string
  /**
   * The ledger key once it is known which call it pays for, for a payment that does not name one: `call` is the digest of
   * the operation and its arguments. Such a payment is answered again to anybody who has it, until the answer is delivered,
   * which `hasArrived` tells of a record.
   */
  keyFor?(call: string, hasArrived: (record: PaymentRecord) => boolean): Promise<string>
  readonly network: string
  readonly asset: string
  readonly payee: string
  /** Digest of everything the payer has signed. */
  readonly authorizationHash: string
  /** The most that may be charged, in atomic units. */
  readonly authorizedAmount: bigint
  /** What a call at this price is charged, in atomic units: at most the authorised amount. */
  amountFor(price: Micros): bigint
  readonly token: string | undefined
  /** The client’s own name for the purchase, scoped to its payer. */
  readonly identifier: string | undefined
  /**
   * What copies meet while the first request works on it and its buyer is connected: they wait for its answer, or are
   * refused at once.
   */
  readonly copies: 'wait' | Refusal
  /**
   * The channel or account that it draws on: payments with the same text are worked on one after the other, over all
   * processes, from the simulation to the charge. Undefined: it depends on no other payment.
   */
  readonly lockKey?: string
  /** What is told to one that has waited for the others for long. Undefined: that it is pending. */
  busy?(): Promise<Refusal>
  /** Whether it fits the offer and the time: local and cheap, asked of new payments only. */
  check(offer: Offer, now: number): Refusal | undefined
  /** Whether the payer has signed it. */
  verify(): Promise<Verification>
  /**
   * Whether it could be charged now: before the work. The authorised amount is reserved until `release`. A refusal may
   * carry a corrected offer (`Refusal.reoffer`).
   */
  simulate(): Promise<Refusal | undefined>
  /** Must be called when the request with it has ended, in whatever way: frees what `simulate` has reserved. */
  release(): void
}

/** A payment that moves money on its network for each call. */
export interface SettledPayment extends PaymentTerms {
  /** Moves an amount of at most what is authorised, and more than nothing. */
  settle(amount: bigint, journal: Journal): Promise<Settlement>
  readonly commit?: undefined
  readonly reservation?: undefined
}

/** A payment that is charged in the ledger alone: its money moves later, for many calls at once. */
export interface CommittedPayment extends PaymentTerms {
  /**
   * Charges an amount of at most what is authorised. Changes nothing itself: the receipt and the changed state of the
   * channel are stored in one commit with the answer, before a byte of it is delivered, or nothing is.
   */
  commit(amount: bigint): Promise<Charge>
  readonly settle?: undefined
  /** When the record of its purchase is stored. Undefined: before the work. */
  readonly reservation?: Reserved
}

/** One payment found in a request. */
export type Payment = SettledPayment | CommittedPayment

/** What `commit` stores with the answer. */
export type Charge =
  | { readonly kind: 'charged'; readonly receipt: Receipt; readonly state: SchemeStateChange }
  | { readonly kind: 'failed'; readonly refusal: Refusal }

/** A payload that buys nothing, such as one that closes a channel. */
export interface Action {
  /** Checks who has signed it and carries it out; a copy of the same payload has the same result. */
  run(): Promise<ActionResult>
}

export type ActionResult =
  | {
      readonly kind: 'done'
      /** Body of the answer, and structured content of a tool call. */
      readonly result: JsonObject
      readonly headers: Readonly<Record<string, string>>
      /** `_meta` of a tool call. */
      readonly meta: JsonObject
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** A payment or an action that a request carries. */
export type Detection =
  | { readonly kind: 'none' }
  /** Cannot be read: 400. */
  | { readonly kind: 'malformed'; readonly code: ErrorCode; readonly detail: string }
  /** Readable, but not acceptable: 402. */
  | { readonly kind: 'refused'; readonly code: ErrorCode; readonly detail: string }
  | { readonly kind: 'payment'; readonly payment: Payment }
  | { readonly kind: 'action'; readonly action: Action }
