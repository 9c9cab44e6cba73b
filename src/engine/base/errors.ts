import type { JsonObject } from './json.ts'

interface ErrorKind {
  readonly status: number
  readonly title: string
  /** What the reader should do next. */
  readonly hint: string
  /** Whether the same request may succeed later without being changed. */
  readonly retryable: boolean
  /** Possible values of "charged" in its responses, the most common first. */
  readonly charged: readonly Charged[]
}

/** Whether money moved for the request that failed. */
export type Charged = 'no' | 'yes' | 'unknown'

/** The members of an error response about money. `refund`: the payment buys nothing more, and its amount is owed. */
export interface ChargeMembers {
  readonly charged: Charged
  readonly refund?: 'due'
}

export const NOT_CHARGED: ChargeMembers = { charged: 'no' }

const NEVER: readonly Charged[] = ['no']
/** With upfront settlement, work may fail after the charge. */
const OF_WORK: readonly Charged[] = ['no', 'yes']
/** Depends on the state of the payment that was sent. */
const BY_PAYMENT: readonly Charged[] = ['no', 'yes', 'unknown']

/**
 * Every error of the service in one table. Codes are part of the interface and are never renamed. The validation
 * error (422) has a body of its own and is listed for completeness.
 */
export const ERRORS = {
  // the request
  route_not_found: kind(
    404,
    'No such path',
    'Paths are case-sensitive and have no trailing slash; / lists them all.',
  ),
  method_not_allowed: kind(405, 'Method not allowed', 'Send a method of the Allow header.'),
  parameters_invalid: kind(422, 'Invalid parameters', 'detail names each parameter and what it should be.'),
  request_malformed: kind(400, 'Malformed request', 'Send a valid HTTP request.'),
  body_malformed: kind(
    400,
    'Malformed body',
    'Send the body in the media type of this route; JSON as UTF-8, each key once.',
  ),
  body_too_large: kind(
    413,
    'Body too large',
    'Send a smaller body; the documentation of the route states the limit.',
  ),
  media_type_unsupported: kind(
    415,
    'Unsupported media type',
    'Send the Content-Type of this route, without Content-Encoding.',
  ),
  upgrade_unsupported: kind(
    501,
    'Protocol cannot be upgraded',
    'Send the request without Upgrade; WebSockets are not passed on.',
  ),
  request_timeout: passing(408, 'Request came too slowly', 'Send the complete request without pauses.'),
  headers_too_large: kind(
    431,
    'Request header too large',
    'Keep the URL and all headers together below 64 KB.',
  ),

  // payments that cannot be read or used for this request
  payment_required: kind(
    402,
    'Payment required',
    'Sign one of the offers and send the request again with the payment.',
  ),
  invalid_payload: kind(
    400,
    'Payment cannot be read',
    'PAYMENT-SIGNATURE is padded standard base64 of a JSON PaymentPayload (x402 v2; X-PAYMENT, of v1); in a call of a tool, _meta["x402/payment"] is that object.',
  ),
  invalid_x402_version: kind(
    400,
    'Unsupported x402 version',
    'Send x402Version 2 with the offer under "accepted", in the PAYMENT-SIGNATURE header.',
  ),
  multiple_payments: kind(
    400,
    'Two payments in one request',
    'Send one payment: PAYMENT-SIGNATURE, X-PAYMENT or Authorization: Payment, and one of their keys in the _meta of a tool call.',
  ),
  malformed_credential: kind(
    402,
    'Payment credential cannot be read',
    'Authorization: Payment takes base64url without padding of a JSON credential: the challenge as it was sent, and the payload.',
  ),
  invalid_challenge: kind(
    402,
    'Challenge is not valid for this request',
    'Pay the new challenge in this response. A challenge is valid for one request with its path and parameters.',
  ),
  payment_expired: kind(402, 'Challenge has expired', 'Pay the new challenge in this response.'),
  verification_failed: kind(
    402,
    'Payment could not be verified',
    'Sign one transfer of the exact amount, token, recipient and memo of the challenge, from an account that holds the money.',
  ),
  method_unsupported: kind(
    400,
    'Payment method is not supported',
    'Pay with a method and intent of the WWW-Authenticate challenges.',
  ),
  idempotency_conflict: kind(
    409,
    'Idempotency key belongs to another request',
    'Choose a new idempotency key or payment-identifier for every new request; repeat one only to repeat its request.',
    BY_PAYMENT,
  ),
  payment_reused: kind(
    409,
    'Payment was used for another request',
    'Sign a new payment for this request.',
    BY_PAYMENT,
  ),
  payment_wrong_resource: kind(
    402,
    'Payment names another resource',
    'Sign the offer of the path you are calling.',
  ),
  no_matching_requirements: kind(
    402,
    'Payment matches no offer',
    'Copy one entry of "accepts" unchanged into "accepted".',
  ),

  // refused payments, with the codes of the x402 SDKs
  invalid_exact_evm_recipient_mismatch: kind(
    402,
    'Authorization pays someone else',
    'Set authorization.to to the offer’s payTo.',
  ),
  invalid_exact_evm_payload_authorization_value_mismatch: kind(
    402,
    'Authorization has another amount',
    'Set authorization.value to the offer’s amount, exactly.',
  ),
  invalid_exact_evm_payload_authorization_valid_before: kind(
    402,
    'Authorization expires too soon or too late',
    'Set validBefore to now plus maxTimeoutSeconds and send it at once.',
  ),
  invalid_exact_evm_payload_authorization_valid_after: kind(
    402,
    'Authorization is not valid yet',
    'Set validAfter to 0.',
  ),
  invalid_exact_evm_signature: kind(
    402,
    'Signature does not match',
    'Sign TransferWithAuthorization with the key of authorization.from, with name and version of the offer’s extra, its asset and its chain id.',
  ),
  invalid_exact_evm_insufficient_balance: kind(
    402,
    'Payer’s balance is too low',
    'Fund the paying address on the network of the offer, or pay on another network.',
  ),
  invalid_exact_evm_nonce_already_used: kind(
    402,
    'Authorization was used before',
    'Sign a new authorization with a fresh nonce.',
  ),
  invalid_exact_evm_transaction_simulation_failed: kind(
    402,
    'Transfer would fail',
    'The token refuses this transfer: check the payer’s balance and that the token is not paused for it.',
  ),
  invalid_exact_svm_payload_transaction: kind(
    402,
    'Transaction is not one that is settled here',
    'Sign a transaction of compute unit limit, compute unit price, TransferChecked and a memo, without lookup tables, whose fee payer is extra.feePayer and occurs in no instruction.',
  ),
  invalid_exact_svm_fee_payer_mismatch: kind(
    402,
    'Transaction names another fee payer',
    'Set the fee payer to extra.feePayer of the offer.',
  ),
  invalid_exact_svm_payload_mint_mismatch: kind(
    402,
    'Transfer is of another token',
    'Transfer the mint that the offer names as its asset.',
  ),
  invalid_exact_svm_payload_recipient_mismatch: kind(
    402,
    'Transfer pays someone else',
    'Transfer to the associated token account of payTo.',
  ),
  invalid_exact_svm_payload_amount_mismatch: kind(
    402,
    'Transfer has another amount',
    'Transfer the offer’s amount, exactly.',
  ),
  invalid_exact_svm_payload_signature_invalid: kind(
    402,
    'Signature does not match',
    'Sign the message of the transaction with the key of the account whose tokens it transfers.',
  ),
  invalid_exact_svm_insufficient_balance: kind(
    402,
    'Payer’s balance is too low',
    'Fund the token account of the payer, or pay on another network.',
  ),
  invalid_exact_svm_blockhash_expired: kind(
    402,
    'Transaction has expired',
    'Sign a new transaction with the latest blockhash and send it at once.',
  ),
  invalid_exact_svm_already_processed: kind(
    402,
    'Transaction was carried out before',
    'Sign a new transaction.',
  ),
  invalid_exact_svm_transaction_simulation_failed: kind(
    402,
    'Transfer would fail',
    'Check that the payer has a token account with enough of the token, and that it is not frozen.',
  ),
  invalid_permit2_spender: kind(
    402,
    'Permit names another spender',
    'Set spender to the proxy of scheme upto, 0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002.',
  ),
  invalid_permit2_recipient_mismatch: kind(
    402,
    'Permit pays someone else',
    'Set witness.to to the offer’s payTo.',
  ),
  upto_facilitator_mismatch: kind(
    402,
    'Permit names another account for its settlement',
    'Set witness.facilitator to facilitatorAddress of the offer’s extra.',
  ),
  permit2_token_mismatch: kind(
    402,
    'Permit is for another token',
    'Set permitted.token to the offer’s asset.',
  ),
  permit2_amount_mismatch: kind(
    402,
    'Permit has another amount',
    'Set permitted.amount to the offer’s amount, exactly: the most that the call may cost.',
  ),
  permit2_deadline_expired: kind(
    402,
    'Permit expires too soon or too late',
    'Set deadline to now plus maxTimeoutSeconds and send it at once.',
  ),
  permit2_not_yet_valid: kind(402, 'Permit is not valid yet', 'Set witness.validAfter to 0.'),
  invalid_permit2_signature: kind(
    402,
    'Signature does not match',
    'Sign PermitWitnessTransferFrom of Permit2 with the key of permit2Authorization.from, for the chain of the offer.',
  ),
  permit2_allowance_required: kind(
    402,
    'Permit2 may not move the payer’s token',
    'Approve Permit2, 0x000000000022D473030F116dDEE9F6B43aC78BA3, for the token once, or send a signed approval in extensions.eip2612GasSponsoring, for the amount of the permit.',
  ),
  permit2_insufficient_balance: kind(
    402,
    'Payer’s balance is too low',
    'Fund the paying address on the network of the offer with the full amount of the permit, or pay on another network.',
  ),
  permit2_invalid_nonce: kind(402, 'Permit was used before', 'Sign a new permit with a fresh nonce.'),
  permit2_simulation_failed: kind(
    402,
    'Transfer would fail',
    'The token refuses this transfer: check the payer’s balance and that the token is not paused for it.',
  ),
  settlement_failed: kind(
    402,
    'Settlement failed',
    'The transfer did not happen. Check the payer’s balance, then sign a new payment.',
  ),

  // channels, with the codes of the x402 SDKs
  invalid_batch_settlement_evm_cumulative_amount_mismatch: kind(
    402,
    'Voucher does not continue its channel',
    'Sign a voucher with the ceiling chargedCumulativeAmount plus the amount of the offer, and add a deposit when the channel does not hold it: channelState and voucherState of the offer say where the channel stands.',
  ),
  invalid_batch_settlement_evm_cumulative_below_claimed: kind(
    402,
    'Voucher is below what was claimed',
    'Read the channel from the chain, and sign a voucher above its totalClaimed.',
  ),
  invalid_batch_settlement_evm_voucher_signature: kind(
    402,
    'Signature of the voucher is not accepted',
    'Sign Voucher with the key of payerAuthorizer: 65 bytes, the smaller s, v 27 or 28.',
  ),
  invalid_batch_settlement_evm_channel_id_mismatch: kind(
    402,
    'Channel id does not fit the channel',
    'voucher.channelId is the EIP-712 hash of channelConfig on the network of the offer.',
  ),
  invalid_batch_settlement_evm_receiver_mismatch: kind(
    402,
    'Channel pays someone else',
    'Open a channel with payTo of the offer as receiver and its extra.receiverAuthorizer.',
  ),
  invalid_batch_settlement_evm_token_mismatch: kind(
    402,
    'Channel holds another token',
    'Open a channel with the asset of the offer.',
  ),
  invalid_batch_settlement_evm_withdraw_delay_mismatch: kind(
    402,
    'Channel has another withdrawal delay',
    'Open a channel with extra.withdrawDelay of the offer.',
  ),
  invalid_batch_settlement_evm_deposit_below_min_deposit: kind(
    402,
    'Deposit is too small',
    'Deposit extra.minDeposit of the offer at least.',
  ),
  invalid_batch_settlement_evm_insufficient_balance: kind(
    402,
    'Payer cannot make the deposit',
    'Fund the paying address on the network of the offer, or deposit less.',
  ),
  invalid_batch_settlement_evm_deposit_simulation_failed: kind(
    402,
    'Deposit would fail',
    'Sign ReceiveWithAuthorization of the asset, or PermitWitnessTransferFrom of Permit2, for its deposit collector, with the key of payer.',
  ),
  invalid_batch_settlement_evm_deposit_transaction_failed: kind(
    402,
    'Deposit has failed',
    'The deposit did not happen. Check the payer’s balance, then sign a new one.',
  ),
  invalid_batch_settlement_evm_refund_no_balance: kind(
    402,
    'Nothing to give back',
    'The channel holds no more than it owes.',
  ),
  invalid_batch_settlement_evm_refund_amount_invalid: kind(
    402,
    'Refund has another amount than it may',
    'detail says how much can be given back.',
  ),

  // sign-in for free routes, with the status that clients of x402's extension answer, and for free tools
  sign_in_required: kind(
    402,
    'Sign-in required',
    'Sign the message of extensions["sign-in-with-x"] and send the proof in the header SIGN-IN-WITH-X. Nothing is to be paid.',
  ),
  sign_in_refused: kind(
    402,
    'Sign-in refused',
    'Sign a new message with the domain, uri and nonce of this response, and send it once, within five minutes.',
  ),
  signature_required: kind(
    401,
    'Signature required',
    'Sign the message of extensions["sign-in-with-x"] and send the proof in _meta["sign-in-with-x"] of the call.',
  ),
  signature_refused: kind(
    403,
    'Signature refused',
    'Sign a new message with the domain, uri and nonce of this response, and send it once, within five minutes.',
  ),

  // temporary failures and limits of payments
  chain_unavailable: passing(
    503,
    'Network cannot be reached',
    'Send the same payment again shortly, or pay on another network.',
  ),
  payer_denied: kind(403, 'Payer is denied', 'Payments from this address are not accepted here.'),
  payer_suspended: passing(429, 'Payer suspended', 'Pay from another address, or after Retry-After.'),
  payer_limit_reached: passing(
    429,
    'Payer has reached its limit',
    'Send the same payment again after Retry-After, or sign a new one then.',
  ),
  ledger_unavailable: passing(
    503,
    'Payments cannot be recorded now',
    'Send the same payment again after Retry-After. Do not sign a new one.',
    BY_PAYMENT,
  ),
  ledger_lost: passing(
    503,
    'Record of payments has lost data',
    'Nothing is sold until the operator has compared the record with the chain. Send the same payment again after Retry-After. Do not sign a new one.',
    BY_PAYMENT,
  ),
  payment_pending: passing(
    503,
    'Payment is being settled',
    'Send the same payment again after Retry-After. Do not sign a new one.',
    ['unknown', 'no'],
  ),
  deadline_too_short: kind(
    402,
    'Too little time left on the payment',
    'Sign a new payment and send it at once.',
  ),

  // the handler and its sources
  not_found: kind(404, 'Not found', 'Check the identifier.', OF_WORK),
  not_implemented: kind(501, 'Not available yet', 'This route is planned but not served yet.'),
  not_configured: kind(503, 'Not configured', 'The operator has not set up the source of this route.'),
  handler_timeout: passing(504, 'Handler timed out', 'Try again, or request less data per call.', OF_WORK),
  upstream_rejected: kind(
    400,
    'Upstream rejects the request',
    'See upstream.body for the reason, then change the request.',
    OF_WORK,
  ),
  upstream_forbidden: kind(
    403,
    'Upstream forbids this call',
    'The credential of this request is valid and does not allow this call: use one that does.',
  ),
  upstream_misconfigured: kind(
    502,
    'Upstream does not accept our calls',
    'The operator has to correct the address or credential of the upstream. Use another route until then.',
    OF_WORK,
  ),
  source_error: passing(502, 'Bad upstream response', 'Try again shortly.', OF_WORK),
  source_timeout: passing(504, 'Source did not answer in time', 'Try again shortly.', OF_WORK),
  source_limited: passing(503, 'Source limits our requests', 'Try again after Retry-After.', OF_WORK),
  dataset_unavailable: passing(
    503,
    'Data set is not loaded or too old',
    'No lookup was made. Try again after Retry-After.',
    OF_WORK,
  ),
  schema_mismatch: kind(
    502,
    'No answer matches the schema',
    'Request fewer members, or make members optional that the text does not contain. errors lists where validation failed.',
    OF_WORK,
  ),
  quota_exceeded: kind(
    403,
    'Storage quota of this wallet is used up',
    'Delete entries that are no longer needed, or write from another wallet.',
  ),
  page_unreadable: kind(502, 'Page has no readable text', 'Use the address of a public page.', OF_WORK),
  usage_missing: passing(
    502,
    'Usage of the call is not known',
    'Nothing was charged. Try again; if it persists, contact the operator.',
  ),
  answer_too_large: kind(502, 'Answer is too large', 'Request less data per call.', OF_WORK),
  too_many_requests: passing(
    429,
    'Too many free calls',
    'Try again after Retry-After; the paid route is not limited.',
  ),
  service_starting: passing(503, 'Service is starting', 'Try again after Retry-After.'),
  service_stopping: passing(503, 'Service is stopping', 'Try again after Retry-After.'),
  service_busy: passing(503, 'Too many large requests at once', 'Try again after Retry-After.'),
  internal: passing(
    500,
    'Internal error',
    'Try again. If the error persists, contact the operator.',
    BY_PAYMENT,
  ),
} as const satisfies Record<string, ErrorKind>

/** A failure that repeats until the request changes. */
function kind(status: number, title: string, hint: string, charged = NEVER): ErrorKind {
  return { status, title, hint, retryable: false, charged }
}

/** A failure that a retry may resolve. */
function passing(status: number, title: string, hint: string, charged = NEVER): ErrorKind {
  return { status, title, hint, retryable: true, charged }
}

export type ErrorCode = keyof typeof ERRORS

/** Why a payment is refused, or cannot be checked now. */
export interface Refusal {
  readonly code: ErrorCode
  readonly detail: string
  /** Seconds after which the same payment may succeed. */
  readonly retryAfter?: number
  /** What the next 402 says instead of the usual offer. */
  readonly reoffer?: CorrectedOffer
}

/** An offer that a scheme corrects, because the payer has an old state of its channel or account. */
export interface CorrectedOffer {
  readonly scheme: string
  /** CAIP-2. */
  readonly network: string
  /** Members to be added to `extra` of the offer. */
  readonly extra: JsonObject
}

export interface FailureOptions {
  /** Whole seconds, for Retry-After. */
  readonly retryAfter?: number
  /** Additional members of the problem body. */
  readonly extra?: JsonObject
  readonly cause?: unknown
}

/**
 * A failure with a stable code. `detail` is one sentence for the caller of the API: no library text, no secret.
 *
 * @example
 * import { Failure, type Handler } from 'ratecard/handler'
 *
 * export const price: Handler<{ readonly app: number }> = async ({ app }) => {
 *   if (app > 1_000_000) throw new Failure('not_found', `App ${app} not found`)
 *   return { source: [{ name: 'computed' }], body: { app, price: 10 } }
 * }
 */
export class Failure extends Error {
  readonly code: ErrorCode
  readonly detail: string
  readonly retryAfter: number | undefined
  readonly extra: JsonObject

  constructor(code: ErrorCode, detail: string, options: FailureOptions = {}) {
    super(`${code}: ${detail}`, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'Failure'
    this.code = code
    this.detail = detail
    this.retryAfter = options.retryAfter
    this.extra = options.extra ?? {}
  }

  get status(): number {
    return ERRORS[this.code].status
  }
}

/** A `Failure` that a handler has thrown: its detail may repeat arguments. */
export class HandlerFailure extends Failure {
  constructor({ code, detail, retryAfter, extra, cause }: Failure) {
    super(code, detail, { extra, cause, ...(retryAfter === undefined ? {} : { retryAfter }) })
  }
}

/** What a log may contain of a failure. */
export function loggedDetail(failure: Failure): string {
  return failure instanceof HandlerFailure ? ERRORS[failure.code].title : failure.detail
}

/**
 * A parameter that fits its schema but is invalid in combination with others, or refers to nothing: answered with 422
 * and never charged. The handler names the parameter; the engine adds whether it was in the path, query or body.
 *
 * @example
 * import { InvalidParameter, type Handler } from 'ratecard/handler'
 *
 * export const span: Handler<{ readonly from: number; readonly to: number }> = async ({ from, to }) => {
 *   if (to < from) throw new InvalidParameter('to', 'to must not be before from')
 *   return { source: [{ name: 'computed' }], body: { days: to - from } }
 * }
 */
export class InvalidParameter extends Error {
  readonly parameter: string
  readonly sentence: string
  readonly ctx: JsonObject

  constructor(parameter: string, sentence: string, ctx: JsonObject = {}) {
    super(`${parameter}: ${sentence}`)
    this.name = 'InvalidParameter'
    this.parameter = parameter
    this.sentence = sentence
    this.ctx = ctx
  }
}

/**
 * The ledger is unavailable, or did not store a change. The message is for the operator.
 *
 * @example
 * import { LedgerError } from 'ratecard'
 *
 * process.on('unhandledRejection', (fault) => {
 *   process.exitCode = fault instanceof LedgerError ? 75 : 70
 * })
 */
export class LedgerError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LedgerError'
  }
}

/** The store was emptied or replaced: nothing is sold before an operator has reopened it. */
export class LedgerLostError extends LedgerError {
  /** `store` names the store, `what` what has happened to it. */
  constructor(store: string, what: string) {
    super(
      `${store} ${what}: no new payment is taken; to compare it with the chain and sell again, run "ratecard ledger reopen"`,
    )
  }
}

/** The message of a thrown value. */
export function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault)
}
