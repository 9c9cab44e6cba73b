import type { IncomingHttpHeaders } from 'node:http'
import type { Endpoint } from '../catalog/catalog.ts'
import type { ErrorCode, Refusal } from '../errors.ts'
import type { JsonObject } from '../json.ts'
import type { SettlementAttempt, PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import type { Micros } from '../money.ts'

export type { Refusal }

/** A way to be paid. The engine holds a visible list of them; each knows its own headers, nothing of the others. */
export interface Protocol {
  readonly name: string
  /** Milliseconds of work a payment outlives, so that it can be settled afterwards; longer work is paid for first. */
  readonly longestWork: number
  /** Finds this protocol’s payment in a request: reads, never trusts. */
  detect(headers: IncomingHttpHeaders): Detection
  readonly tools: ToolBinding
  /** What a 402 of this endpoint says in this protocol; undefined when nothing can be settled. Built once a revision. */
  challenge(endpoint: Endpoint): Challenge | undefined
  /** Finishes what another process began: for a payment whose header is gone. */
  resolve(entry: PaymentRecord): Promise<Settlement>
  /** Headers of an answer, good or bad by its status, to a payment that has settled. */
  receiptHeaders(entry: PaymentRecord, receipt: Receipt, status: number): Readonly<Record<string, string>>
  /** Headers of a 402 given after work, when the settlement has definitely failed. */
  failureHeaders(entry: PaymentRecord, code: ErrorCode): Readonly<Record<string, string>>
}

/** How a protocol speaks in calls of MCP tools, which have no headers: under names of its own in `_meta`. */
export interface ToolBinding {
  /** What a server that takes it says of itself. */
  readonly capabilities: Capabilities
  /** Finds this protocol’s payment in the `_meta` of a call: reads, never trusts. */
  detect(meta: JsonObject): Detection
  /** `_meta` of an answer, good or bad by its status, to a payment that has settled. */
  receipt(entry: PaymentRecord, receipt: Receipt, status: number): JsonObject
  /** `_meta` of a refusal after work, when the settlement has definitely failed. */
  failure(entry: PaymentRecord, code: ErrorCode): JsonObject
}

/** The standing part of a protocol’s 402. */
export interface Challenge {
  /**
   * Makes headers and body members for the same request, as often as it comes: each time with another token, and all else
   * worked out once. `error`: why a payment was refused, else that one is required.
   */
  prepare(request: ChallengeRequest): () => IssuedChallenge
  /** The same for a call of a tool. */
  demand(request: ChallengeRequest): ToolDemand
  /** What documents say of this offer: without anything random, concrete example path. */
  readonly published: JsonObject
  /** Bytes of the largest header this challenge sends. */
  readonly headerBytes: number
}

export interface ChallengeRequest {
  /** Absolute URL of the concrete path, no query. */
  readonly resource: string
  /** Operation and arguments, as a digest: what a payment can be bound to. */
  readonly scope: string
  /** RFC 9530 digest of the request’s body, where it was read whole. */
  readonly contentDigest?: string | undefined
  readonly error: ErrorCode
}

export interface IssuedChallenge {
  readonly headers: Readonly<Record<string, string>>
  /** Members of the body object as JSON text without the braces. */
  readonly members: string
}

export type Detection =
  | { readonly kind: 'none' }
  /** Cannot be read: 400. */
  | { readonly kind: 'malformed'; readonly code: ErrorCode; readonly detail: string }
  /** Can be read, and cannot be taken: 402. */
  | { readonly kind: 'refused'; readonly code: ErrorCode; readonly detail: string }
  | { readonly kind: 'payment'; readonly payment: Payment }

/** What is for sale at this request. */
export interface Offer extends OfferTerms {
  readonly endpoint: Endpoint
  readonly resource: string
  readonly scope: string
  /** RFC 9530 digest of the request’s body. */
  readonly contentDigest?: string | undefined
}

export interface OfferTerms {
  /** The operation’s price, or one that was offered lately. */
  readonly price: Micros
  /** Seconds an x402 payment was to be valid for when it was offered lately; absent: as offered now. */
  readonly timeoutSeconds?: number
}

/** What the payer’s signature has told. */
export type Verification =
  | {
      readonly kind: 'verified'
      /** EIP-55. */
      readonly payer: string
      /** Who signed for the payer. */
      readonly account: 'key' | 'contract'
      /** Milliseconds since the epoch; the money cannot be moved at or after it. */
      readonly validBefore: number
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** One payment found in a request. */
export interface Payment {
  readonly protocol: Protocol
  /** Ledger key: the signed fields. */
  readonly key: string
  readonly network: string
  readonly asset: string
  readonly payee: string
  /** Digest of everything the payer has signed. */
  readonly authorizationHash: string
  /** Atomic units. */
  readonly amount: bigint
  readonly token: string | undefined
  /** The client’s own name for the purchase, scoped to its payer. */
  readonly identifier: string | undefined
  /** What copies meet while the first is at work: `wait` for its answer, or `refusal` at once. */
  readonly copies: 'wait' | Refusal
  /** Whether it fits the offer and the time: local and cheap, asked of new payments only. */
  check(offer: Offer, now: number): Refusal | undefined
  /** Whether the payer has signed it. */
  verify(): Promise<Verification>
  /** Whether the chain would take it now, and it can be sent: before the work. Its amount is reserved until `release`. */
  simulate(): Promise<Refusal | undefined>
  /** Moves the money. */
  settle(journal: Journal): Promise<Settlement>
  /** The request with it is done, however it ended. */
  release(): void
}

/** Where a settlement writes what it is about to do, before it does it. */
export interface Journal {
  record(dispatch: SettlementAttempt): Promise<void>
}

/** Three outcomes, never two: what is not known is not a failure. */
export type Settlement =
  | { readonly kind: 'settled'; readonly receipt: Receipt }
  | { readonly kind: 'failed'; readonly refusal: Refusal }
  | { readonly kind: 'unknown'; readonly detail: string }

/** Sent, and not seen in a block so far. */
export const UNCONFIRMED: Settlement = {
  kind: 'unknown',
  detail: 'the network has not confirmed the payment yet',
}

export const SETTLEMENT_FAILED: Settlement = {
  kind: 'failed',
  refusal: { code: 'settlement_failed', detail: 'the transfer was not carried out; nothing was charged' },
}

const TOKEN_BYTES = 18
/** Characters of a token in base64url. */
export const TOKEN_LENGTH = 24

/** Asking the system for 18 bytes, and encoding them, costs as much as for many. */
const TOKENS_AT_ONCE = 64

/** Random tokens, one for each challenge: no two challenges are alike, of whichever process and moment. */
export function createTokens(random: (bytes: number) => Uint8Array): () => string {
  let pool = ''
  let next = 0
  return () => {
    if (next === pool.length) {
      pool = Buffer.from(random(TOKEN_BYTES * TOKENS_AT_ONCE)).toString('base64url')
      next = 0
    }
    next += TOKEN_LENGTH
    return pool.slice(next - TOKEN_LENGTH, next)
  }
}

/** Base64 of texts that begin alike: the common part, whose last two characters are ASCII, is encoded once. */
export function encodeAfter(
  beginning: string,
  encoding: 'base64' | 'base64url',
): (asciiRest: string) => string {
  const bytes = Buffer.from(beginning, 'utf8')
  const whole = bytes.length - (bytes.length % 3)
  const encoded = bytes.toString(encoding, 0, whole)
  const left = bytes.toString('latin1', whole)
  return (rest) => encoded + Buffer.from(left + rest, 'latin1').toString(encoding)
}

/** What the operator's settings are called: variables of the command, options of a program. */
export interface SettingNames {
  readonly payTo: string
  readonly signerKeys: string
  readonly facilitators: string
  readonly mppRecipient: string
  readonly mppSecretKeys: string
  readonly baseUrl: string
  readonly rpcUrl: (chainId: number) => string
}

/** Members of MCP's server capabilities. */
export interface Capabilities {
  readonly extensions?: Record<string, Record<string, never>>
  /** Payment scheme, transport MCP. */
  readonly experimental?: Record<string, { methods: Record<string, { intents: string[] }> }>
}

/** What an unpaid call is told in one protocol. */
export interface ToolDemand {
  /** Members of the result's structured content, and of its text. */
  readonly content: JsonObject
  readonly meta: JsonObject
  /** What clients get in place of all that, if they say that they know this extension of MCP. */
  readonly extension?: { readonly name: string; readonly result: JsonObject }
}
