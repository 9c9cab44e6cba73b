import type { IncomingHttpHeaders } from 'node:http'
import type { Endpoint } from '../catalog/catalog.ts'
import type { BlockLook } from '../chains/evm/finality.ts'
import type { ErrorCode, Refusal } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { JointCommit } from '../ledger/joint-commit.ts'
import type { BlockReference, SettlementAttempt, PaymentRecord, Receipt } from '../ledger/payment-record.ts'
import { once } from '../base/once.ts'
import type { Micros } from '../base/money.ts'

export type { BlockLook, Refusal }

/** A way to be paid. The engine holds a visible list of them; each knows its own headers, nothing of the others. */
export interface Protocol {
  readonly name: string
  /** Milliseconds of work a payment outlives, so that it can be settled afterwards; longer work is paid for first. */
  readonly longestWork: number
  /**
   * The payer that a text of an operator names, as `Verification` spells it; undefined when the text is not an address of
   * this protocol.
   */
  payerKey(text: string): string | undefined
  /** Finds this protocol’s payment in a request: reads, never trusts. */
  detect(headers: IncomingHttpHeaders): Detection
  readonly tools: ToolBinding
  /**
   * The 402 of this endpoint in this protocol; undefined when nothing can be settled. Built once per revision, and
   * for a computed price once for each `amount`.
   */
  challenge(endpoint: Endpoint, amount?: Micros): Challenge | undefined
  /** Finishes what another process started, for a payment without its header. */
  resolve(entry: PaymentRecord): Promise<Settlement>
  /** Settles a payment again that a reorganisation has undone, when what was sent for it can never be mined any more. */
  resettle?(entry: PaymentRecord, journal: Journal): Promise<Settlement>
  /** Asks a network which of these blocks of settled payments are final, and which were undone. */
  lookAtBlocks(network: string, blocks: readonly BlockReference[]): Promise<BlockLook>
  /** Headers of an answer, good or bad by its status, to a payment that has settled. */
  receiptHeaders(entry: PaymentRecord, receipt: Receipt, status: number): Readonly<Record<string, string>>
  /** Headers of a 402 given after work, when the settlement has definitely failed. */
  failureHeaders(entry: PaymentRecord, code: ErrorCode): Readonly<Record<string, string>>
}

/** The protocol in calls of MCP tools, which have no headers: it uses members of its own in `_meta`. */
export interface ToolBinding {
  /** Capabilities that a server with this protocol announces. */
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
  /** The same for a tool call. */
  demand(request: ChallengeRequest): ToolDemand
  /** What documents say about this offer: without anything random, concrete example path. */
  readonly published: JsonObject
  /** Size in bytes of the largest header of this challenge. */
  readonly headerBytes: number
}

/** The price of every call of an endpoint; undefined where it is free, or computed. */
export function fixedPrice({ operation: { price } }: Pick<Endpoint, 'operation'>): Micros | undefined {
  return typeof price === 'object' ? undefined : price
}

/** The price of the call that documents show; undefined where it is free. */
export function exampleAmount({ price }: Endpoint['operation']): Micros | undefined {
  return typeof price === 'object' ? price.example : price
}

/** Why a payment does not fit a computed price: it was made for other arguments. Amounts are in atomic units. */
export function otherArguments({ operation }: Endpoint, made: string, due: string): string | undefined {
  return typeof operation.price === 'object' && made !== due
    ? `the payment was made for ${made}; with these arguments the call costs ${due}`
    : undefined
}

/** Most kept challenges of one endpoint, for the amounts that were requested last. */
const KEPT_AMOUNTS = 100

/** The challenges of an endpoint in every protocol it can be paid with, by the amount of a call. */
export function challengesOf(
  endpoint: Endpoint,
  protocols: readonly Protocol[],
): (amount: Micros) => ReadonlyMap<string, Challenge> {
  const made = (amount?: Micros): ReadonlyMap<string, Challenge> => {
    const named = protocols.flatMap((protocol): [string, Challenge][] => {
      const challenge = protocol.challenge(endpoint, amount)
      return challenge === undefined ? [] : [[protocol.name, challenge]]
    })
    return new Map(named)
  }
  if (typeof endpoint.operation.price !== 'object') {
    return once(() => made())
  }
  const known = new Map<Micros, ReadonlyMap<string, Challenge>>()
  return (amount) => {
    const found = known.get(amount) ?? made(amount)
    known.delete(amount)
    known.set(amount, found)
    const [oldest] = known.keys()
    if (known.size > KEPT_AMOUNTS && oldest !== undefined) known.delete(oldest)
    return found
  }
}

export interface ChallengeRequest {
  /** Absolute URL of the concrete path, no query. */
  readonly resource: string
  /** Digest of operation and arguments, to which a payment can be bound. */
  readonly scope: string
  /** RFC 9530 digest of the request’s body, if all of it was read. */
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
  /** Readable, but not acceptable: 402. */
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

/** One payment found in a request. */
export interface Payment {
  readonly protocol: Protocol
  /** How it is paid within the protocol. */
  readonly scheme: string
  /** Ledger key: the signed fields. */
  readonly key: string
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
  /** What copies meet while the first is at work: `wait` for its answer, or `refusal` at once. */
  readonly copies: 'wait' | Refusal
  /** Whether it fits the offer and the time: local and cheap, asked of new payments only. */
  check(offer: Offer, now: number): Refusal | undefined
  /** Whether the payer has signed it. */
  verify(): Promise<Verification>
  /**
   * Whether the chain would take it now, and it can be sent: before the work. The authorised amount is reserved until
   * `release`.
   */
  simulate(): Promise<Refusal | undefined>
  /** Moves an amount of at most what is authorised. */
  settle(amount: bigint, journal: Journal): Promise<Settlement>
  /** The request with it is done, however it ended. */
  release(): void
}

/** Records each step of a settlement before it is taken. */
export interface Journal {
  /** `joint`: the commit that stores it together with others. */
  record(dispatch: SettlementAttempt, joint?: JointCommit): Promise<void>
}

/** Three outcomes: an unknown outcome is not a failure. */
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

/** Tokens per request to the system: 18 bytes and their encoding cost as much as many. */
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

/** Base64 of texts with a common prefix that ends with two ASCII characters: the prefix is encoded once. */
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
  readonly cdpSecret: string
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

/** The 402 of a tool call in one protocol. */
export interface ToolDemand {
  /** Members of the result's structured content, and of its text. */
  readonly content: JsonObject
  readonly meta: JsonObject
  /** What clients get in place of all that, if they say that they know this extension of MCP. */
  readonly extension?: { readonly name: string; readonly result: JsonObject }
}
