import type { CorrectedOffer, Refusal } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Operation, Payments } from '../catalog/catalog.ts'
import type { BlockLook } from '../chains/evm/finality.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { BlockReference, PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import type { CommittedPayment, Detection, Offer, PaymentTerms, SettledPayment } from '../payment/payment.ts'
import type { Journal, Settlement } from '../payment/settlement.ts'
import type { Listing } from './listing.ts'
import type { PaymentPayload } from './payload.ts'
import type { NetworkOffer } from './requirements.ts'

/**
 * One way to be paid within x402 (v2 core §6): `exact`, `upto`, `batch-settlement`. x402 has one pair of headers for all
 * of them; a scheme owns `payload`, and its entries of `accepts`. It is one folder, and one line in `app/`.
 *
 * A scheme is made for one revision of the catalog. What it keeps between payments is in the ledger (`Ledger.states`),
 * under names that begin with its own; what it holds in memory is lost with the process.
 */
export interface Scheme {
  /** As in `accepts[].scheme`. */
  readonly name: string
  /** What it offers now, in order of preference; empty while it can settle nowhere. */
  readonly offers: readonly NetworkOffer[]
  /**
   * What its offers name of the moment, such as a recent block: a 402 has it, documents do not, and no payment is compared
   * with it. Each is the same object until it changes. Called for every 402, so it never asks anybody.
   */
  recent?(): readonly CorrectedOffer[]
  /** Whether payments on a network are finished here, offered now or not. CAIP-2. */
  knows(network: string): boolean
  /**
   * The payer that a text of an operator names, as `verify` spells it; undefined when the text is not an address of this
   * scheme. Nothing outside a scheme changes the spelling of a payer.
   */
  payerKey(text: string): string | undefined
  /** Whether a payload may buy nothing (`SchemeAction`). */
  readonly takesActions?: boolean
  /** Reads the `payload` of a payment on one of its networks: never trusts, never asks anybody. */
  decode(payload: PaymentPayload): DecodedScheme
  /**
   * Finds out what became of a payment whose process has died, from its record: settled, failed, or unknown. A payment
   * that is charged in the ledger (`commit`) has failed when its record has no receipt.
   */
  resolve(record: PaymentRecord): Promise<Settlement>
  /** Sends again what is recorded for a payment that was charged: the same bytes, by any number of processes at once. */
  resend?(record: PaymentRecord): Promise<void>
  /** Settles again what a reorganization has undone, when what was sent for it can never be mined any more. */
  resettle?(record: PaymentRecord, journal: Journal): Promise<Settlement>
  /** Whether, for now, only another process can settle what was handed over: it is left alone until its payment is over. */
  isForAnother?(record: PaymentRecord): boolean
  /** Which of these blocks of receipts are final, and which were undone. A receipt without a block is never asked for. */
  lookAtBlocks(network: string, blocks: readonly BlockReference[]): Promise<BlockLook>
  /**
   * The members of PAYMENT-RESPONSE with an answer of this status, where they are not those of the receipt. Nothing, where a
   * client that reads it would pay again for an answer that it is still owed.
   */
  responseOf?(record: PaymentRecord, receipt: Receipt, status: number): JsonObject | undefined
  /**
   * Work that no request waits for, such as claiming what channels owe. Called every few seconds, and never twice at once
   * in one process; other processes run it at the same time. A rejection is reported, and the next call tries again.
   */
  background?(): Promise<void>
  /** The process stops: tells others what they must know of it. */
  leave?(): Promise<void>
}

/** Opens a scheme, once per process; what it returns makes the scheme of each revision of the catalog. */
export type OpenScheme = (context: SchemeContext) => (terms: X402Terms) => Scheme

/** What the catalog says of x402. */
export type X402Terms = NonNullable<Payments['x402']>

export interface SchemeContext {
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly fetcher: typeof fetch
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** What a scheme finds in a payload. */
export type DecodedScheme =
  | Exclude<Detection, { readonly kind: 'none' | 'payment' | 'action' }>
  | { readonly kind: 'payment'; readonly payment: SchemePayment }
  | { readonly kind: 'action'; readonly action: SchemeAction }

/** What x402 knows of every payment without its scheme. */
type Common = 'protocol' | 'scheme' | 'token' | 'identifier' | 'copies' | 'check'

interface SchemeTerms extends Omit<PaymentTerms, Common> {
  /** Whether `accepted` and what is signed fit the offer and the time; local and cheap. */
  check(offer: SchemeOffer, now: number): Refusal | undefined
}

/** A payment as its scheme knows it: an object literal, whose members x402 copies. */
export type SchemePayment =
  | (SchemeTerms & Pick<SettledPayment, 'settle' | 'commit' | 'reservation'>)
  | (SchemeTerms & Pick<CommittedPayment, 'settle' | 'commit' | 'reservation'>)

/** What is for sale, for a scheme. */
export interface SchemeOffer extends Offer {
  readonly settle: Operation['settle']
  /** What a facilitator may list of it. */
  readonly listed: (Listing & { readonly url: string }) | undefined
}

/** A payload that buys nothing, such as one that closes a channel. */
export interface SchemeAction {
  /**
   * Checks who has signed it and carries it out. A copy of the payload has the same result. Resolves to the members of
   * PAYMENT-RESPONSE, which are the body of the answer too.
   */
  run(): Promise<
    | { readonly kind: 'done'; readonly result: JsonObject }
    | { readonly kind: 'refused'; readonly refusal: Refusal }
  >
}
