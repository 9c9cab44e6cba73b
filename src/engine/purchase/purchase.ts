import { LOST_ANSWER_MS } from '../base/money-times.ts'
import { inSpan } from '../base/tracing.ts'
import type { Endpoint, Operation } from '../catalog/catalog.ts'
import type { Quote } from '../catalog/price/price.ts'
import { quoteRule } from '../catalog/price/rule.ts'
import type { IgnoredParameter } from '../catalog/validator.ts'
import type { Arguments } from '../handler.ts'
import { isReusable, reserve } from '../ledger/lease.ts'
import type { PaymentRecord, Purchase } from '../ledger/payment-record.ts'
import { buyerKeyOf, chargeStatus, identifierName, paymentId } from '../ledger/payment-lifecycle.ts'
import {
  ERRORS,
  LedgerError,
  NOT_CHARGED,
  type Charged,
  type ChargeMembers,
  type ErrorCode,
  type Failure,
  type InvalidParameter,
} from '../base/errors.ts'
import type { Detection, Offer, Payment } from '../payment/payment.ts'
import type { Refusal } from '../base/errors.ts'
import {
  digestArguments,
  perform,
  preflightCall,
  scopeOf,
  unreadyFailure,
  type ExecutionDeps,
  type Operations,
  type ServedOperation,
} from './execution.ts'
import {
  type Fulfillment,
  type LeasedPurchase,
  type PurchaseDeps,
  type PurchaseRequest,
  type Verified,
  type VerifiedPurchase,
} from './request.ts'
import { ledgerCode, toPublicError, type FaultDeps } from './problem.ts'
import { type Answered, type Paid, type PurchaseResult, type Streaming } from './result.ts'
import { meterUnknown, meterWork } from './metering.ts'
import { endOf } from './usage-documents.ts'
import { dedupeByIdentifier } from './idempotency.ts'
import { withinLimit } from './payer-limit.ts'
import { hasArrived, redeliverAny, waitAsBuyer, type NewPurchase } from './redelivery.ts'
import { replay } from './replay.ts'
import { start, withLease } from './settlement-flow.ts'
import { chooseSettleOrder, suspensionOf, tooLate } from './settle-order.ts'

export interface PaidCallDeps extends ExecutionDeps {
  readonly purchases: PurchaseDeps
}

/** A call of an operation with the payment that came with it, over whichever transport. */
export interface PaidCall {
  readonly payment: Payment
  readonly endpoint: Endpoint
  /** Absolute URL of the call. */
  readonly resource: string
  readonly served: ServedOperation
  readonly operations: Operations
  /** Revision of the catalog that makes the offer. */
  readonly revision: string
  readonly args: Arguments
  /** The price with these arguments. */
  readonly quote: Quote
  /** What the challenge is bound to, if not to the arguments. */
  readonly scope?: string
  /** RFC 9530 digest of the request’s body. */
  readonly contentDigest?: string
  /** Parameters of the request that were ignored. */
  readonly ignored?: readonly IgnoredParameter[] | undefined
  /** Aborted when the client has gone away. */
  readonly gone: AbortSignal
}

/** The price of a call with these arguments: computed once per request, before the challenge. */
export function quoteCall({ price }: Operation, args: Arguments): Quote {
  if (price === undefined) throw new Error('the operation has no price')
  return typeof price === 'bigint' ? { amount: price } : quoteRule(price.rule, args)
}

/** The payment in a request, which may carry one of each protocol. */
export function findPayment(detections: readonly Detection[]): Detection {
  const [found = NONE, another] = detections.filter(({ kind }) => kind !== 'none')
  if (another === undefined) return found
  const detail = 'the request carries payments of two protocols'
  return { kind: 'malformed', code: 'multiple_payments', detail }
}

const NONE: Detection = { kind: 'none' }

/** Buys one call: a payment is bound to the operation and its arguments, whatever the transport. */
export async function purchaseCall(deps: PaidCallDeps, call: PaidCall): Promise<PurchaseResult> {
  const { endpoint, resource, served, args, quote, revision, gone, contentDigest } = call
  const { operation } = served
  const digest = digestArguments(operation, args)
  const { scope = scopeOf(operation, digest) } = call
  const offer = { endpoint, resource, scope, contentDigest, price: quote.amount }
  const identifier = call.payment.identifier ?? identifierOf(operation, args)
  const fulfillment = fulfillmentOf(deps, call)
  try {
    const payment = await paymentFor(deps.purchases, call.payment, `${operation.id} ${digest}`)
    const request = { payment, offer, revision, args, digest, identifier, fulfillment, gone }
    return await purchase(deps.purchases, request)
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    deps.purchases.report(fault)
    return { kind: 'unavailable', code: ledgerCode(fault) }
  }
}

/** The payment under the key of the call it pays for. */
async function paymentFor({ buyers }: PurchaseDeps, payment: Payment, call: string): Promise<Payment> {
  const key = await payment.keyFor?.(call, (record) => hasArrived(buyers, record))
  return key === undefined ? payment : { ...payment, key }
}

/** The identifier from parameters declared as idempotency keys. As JSON it never equals the identifier of a payment. */
function identifierOf({ id, parameters }: Operation, args: Arguments): string | undefined {
  const keys = parameters.flatMap(({ name, isIdempotencyKey }) =>
    isIdempotencyKey ? [args[name] ?? ''] : [],
  )
  return keys.every((key) => key === '') ? undefined : JSON.stringify([id, ...keys])
}

function fulfillmentOf(
  deps: PaidCallDeps,
  { payment: paid, endpoint, served, operations, args, ignored, quote }: PaidCall,
): Fulfillment {
  const { check, store, readiness, operation } = served
  const { meter, id: name } = operation
  const unready = unreadyFailure(readiness)
  // The ledger is read first: a call that was paid while the operation was ready is answered anyway.
  const refuse = (): Promise<never> => Promise.reject(unready)
  if (unready !== undefined) return { run: refuse, preflight: refuse, store }
  return {
    run: async ({ payment: id, payer, account, timeLeft, delivery }) => {
      const payment = { id, protocol: paid.protocol.name, network: paid.network, payer, account }
      const caller = { payment, signer: undefined }
      const began = deps.now()
      const { answer, usage } = await perform(deps, {
        endpoint,
        served,
        operations,
        args,
        ignored,
        caller,
        timeLeft,
        delivery,
      })
      if (meter === undefined) return answer
      const metered = { id: name, meter, ceiling: quote.amount, report: deps.purchases.report }
      if (answer.kind === 'stream') {
        const opened = deps.now() - began
        return {
          kind: 'metered stream',
          stream: answer,
          price: (end, took) => meterWork(metered, { answer: end, usage, took: opened + took }),
          priceOfPart: (reason) => meterUnknown(metered, reason),
        }
      }
      const work = { answer: endOf(answer), usage, took: deps.now() - began }
      return { kind: 'metered', answer, ...meterWork(metered, work) }
    },
    preflight:
      check === undefined
        ? undefined
        : (timeLeft) => preflightCall(deps, { served, operations, args, timeLeft }, check),
    store,
  }
}

function verify({ tracing }: PurchaseDeps, payment: Payment): ReturnType<Payment['verify']> {
  const about = { 'ratecard.network': payment.network, 'ratecard.scheme': payment.scheme }
  return inSpan(tracing, 'verify', about, () => payment.verify())
}

/** Why a payment would be refused, before anything else is done for its request. */
export async function preverify(deps: PurchaseDeps, payment: Payment): Promise<Refusal | undefined> {
  const verified = await verify(deps, payment)
  if (verified.kind === 'refused') return verified.refusal
  try {
    // A payment that was used already may still be owed its answer.
    if ((await deps.ledger.get(payment.key)) !== undefined) return undefined
    return isDenied(deps, verified) ? DENIED : await payment.simulate()
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    deps.report(fault)
    return { code: ledgerCode(fault), detail: LEDGER_AWAY }
  } finally {
    payment.release()
  }
}

const DENIED: Refusal = {
  code: 'payer_denied',
  detail: 'payments from this address are not accepted; nothing was charged',
}

/** Checked after the signature, so that nobody learns whether the address of another is denied. */
function isDenied({ denied }: PurchaseDeps, { payer }: Verified): boolean {
  return denied.has(payer)
}

/** Accepts a payment: runs the handler once, charges once, and answers every request with this payment. */
export async function purchase(deps: PurchaseDeps, request: PurchaseRequest): Promise<PurchaseResult> {
  const { payment, offer } = request
  const known = await deps.ledger.get(payment.key)
  if (known !== undefined && !isReusable(known, deps.now())) {
    const verified = await verify(deps, payment)
    if (verified.kind === 'verified') {
      // A payment that was sent to the chain is finished and answered, even of a denied payer.
      const isSent = known.receipt !== undefined || known.state === 'settling' || known.state === 'unknown'
      if (!isSent && isDenied(deps, verified)) return { kind: 'refused', refusal: DENIED }
      return replay({ deps, request, verified }, known, buyIfOffered)
    }
    // The payer could not be verified, so the outcome of the payment must not be disclosed.
    return verified.refusal.code === 'chain_unavailable' ? { kind: 'pending', id: known.id } : verified
  }
  const refusal = payment.check(offer, deps.now())
  const verified = await verify(deps, payment)
  if (verified.kind === 'refused') return refusal === undefined ? verified : { kind: 'refused', refusal }
  // Recent offers of other processes are looked up only for a verified payment.
  if (refusal !== undefined && !(await fitsRecentOffer(deps, request))) return { kind: 'refused', refusal }
  return buy({ deps, request, verified })
}

/** Checks the offer again: it may have ended while the request waited for another purchase. */
async function buyIfOffered(purchase: VerifiedPurchase): Promise<PurchaseResult> {
  const { deps, request } = purchase
  const refusal = request.payment.check(request.offer, deps.now())
  if (refusal !== undefined && !(await fitsRecentOffer(deps, request))) return { kind: 'refused', refusal }
  return buy(purchase)
}

/** Whether the payment was signed for an offer that was withdrawn within `reprice_grace`. */
async function fitsRecentOffer(
  deps: PurchaseDeps,
  { payment, offer, args }: PurchaseRequest,
): Promise<boolean> {
  const recent = await deps.recentOffers(offer.endpoint.operation, args)
  return recent.some((terms) => {
    const withdrawn: Offer = { ...offer, ...terms }
    return payment.check(withdrawn, deps.now()) === undefined
  })
}

/** Buys with a payment that has bought nothing yet. */
async function buy(purchase: VerifiedPurchase): Promise<PurchaseResult> {
  const { deps, request, verified } = purchase
  if (isDenied(deps, verified)) return { kind: 'refused', refusal: DENIED }
  const [undelivered, purchased] = await Promise.all([listUndelivered(purchase), describe(purchase)])
  const earlier = undelivered.length === 0 ? NOTHING_LOST : await redeliverAny(purchase, undelivered)
  if (earlier.kind !== 'new') return earlier
  const refusal = tooLate(deps, purchased.settle, verified) ?? (await suspensionOf(purchase))
  if (refusal !== undefined) return { kind: 'refused', refusal }
  // The store shows the reservation to other requests before it is confirmed here: its buyer is connected by then.
  return waitAsBuyer(purchase, { id: paymentId(purchased.key) }, async () => {
    const reservation = await reserve(deps, purchased, request.payment.reservation)
    if (reservation.kind === 'reserved') {
      const leased = { ...purchase, lease: reservation.lease }
      let known: PaymentRecord | undefined
      const result = await withinLimit(leased, () =>
        withLease(leased, async (held) => {
          known = await boughtMeanwhile(held)
          return known === undefined ? start(held, earlier.unsold) : { kind: 'pending', id: known.id }
        }),
      )
      return known === undefined ? result : replay(purchase, known, buyIfOffered)
    }
    const { record } = reservation
    return record.key === request.payment.key
      ? replay(purchase, record, buyIfOffered)
      : dedupeByIdentifier(purchase, record, buyIfOffered)
  })
}

/** The record of a copy that had the lock of the payment before this request, whose own record is not stored yet. */
async function boughtMeanwhile({ deps, lease }: LeasedPurchase): Promise<PaymentRecord | undefined> {
  if (lease.isStored) return undefined
  const known = await deps.ledger.get(lease.record.key)
  if (known === undefined) lease.startRenewal()
  return known
}

const NOTHING_LOST: NewPurchase = { kind: 'new', unsold: undefined }

/** Most lost answers of one buyer; older ones are redelivered for their own payments only. */
const MOST_LOST = 20

/** Recent equal purchases of this buyer with an unconfirmed delivery. */
async function listUndelivered({
  deps,
  request,
  verified,
}: VerifiedPurchase): Promise<readonly PaymentRecord[]> {
  const { id, method } = request.offer.endpoint.operation
  // A second call with effects may be intended: only an identifier of the buyer makes it the same one.
  if (method !== 'GET') return []
  const buyer = buyerKeyOf(verified.payer, id, request.digest)
  return deps.ledger.undelivered(buyer, deps.now() - LOST_ANSWER_MS, MOST_LOST)
}

async function describe(purchase: VerifiedPurchase): Promise<Purchase> {
  const { deps, request, verified } = purchase
  const { payment, offer, revision, digest, identifier } = request
  const { payer, validBefore } = verified
  const operation = offer.endpoint.operation.id
  const most = payment.amountFor(offer.price)
  // A ceiling may have risen since the payer has signed it.
  const isLess = offer.endpoint.operation.meter !== undefined && most > payment.authorizedAmount
  const amount = isLess ? payment.authorizedAmount : most
  if (amount > payment.authorizedAmount)
    throw new Error(`scheme ${payment.scheme} would charge more than its payer has signed`)
  return {
    key: payment.key,
    protocol: payment.protocol.name,
    scheme: payment.scheme,
    network: payment.network,
    asset: payment.asset,
    payer,
    payee: payment.payee,
    authorizationHash: payment.authorizationHash,
    authorizedAmount: payment.authorizedAmount.toString(),
    amount: amount.toString(),
    validBefore,
    operation,
    digest,
    revision,
    redeliveryToken: payment.token,
    settle: await chooseSettleOrder(purchase),
    redeliver: deps.redeliver,
    buyerKey: buyerKeyOf(payer, operation, digest),
    identifier: identifier === undefined ? undefined : identifierName(payer, identifier),
    ...(deps.receipts !== undefined && { resource: offer.resource }),
  }
}

/** What is sent for a purchase, in whichever protocol the request came. */
export type PurchaseReply =
  | Answered
  | Streaming
  /** Another payment is asked for; `failed`: the record of one that could not be settled after the work. */
  | { readonly kind: 'offer'; readonly refusal: Refusal; readonly failed?: PaymentRecord }
  /** The handler has failed; `paid`: after the charge. */
  | {
      readonly kind: 'fault'
      readonly fault: Failure | InvalidParameter
      readonly charge: ChargeMembers
      readonly paid?: Paid
    }
  | PurchaseProblem

export interface PurchaseProblem {
  readonly kind: 'problem'
  readonly code: ErrorCode
  readonly detail: string
  readonly charged: Charged
  /** Public id of the payment. With `payment_pending`, its state is at `/payments/{id}`. */
  readonly payment?: string
  /** Seconds. */
  readonly retryAfter?: number
}

export function replyTo(deps: FaultDeps, result: PurchaseResult): PurchaseReply {
  const kind = 'problem'
  switch (result.kind) {
    case 'answered':
    case 'streaming':
      return result
    case 'settlementFailed':
      return { kind: 'offer', refusal: result.refusal, failed: result.record }
    case 'paidUnfulfilled': {
      const fault = toPublicError(deps, result.fault, 'yes')
      const charge: ChargeMembers =
        result.record.refund === undefined ? { charged: 'yes' } : { charged: 'yes', refund: 'due' }
      return { kind: 'fault', fault, charge, paid: result }
    }
    case 'failed':
      return { kind: 'fault', fault: toPublicError(deps, result.fault, 'no'), charge: NOT_CHARGED }
    case 'refused': {
      const { code, detail, retryAfter = 5 } = result.refusal
      const { status, retryable } = ERRORS[code]
      if (status === 402) return { kind: 'offer', refusal: result.refusal }
      return { kind, code, detail, charged: 'no', ...(retryable ? { retryAfter } : {}) }
    }
    case 'replayRejected': {
      const { code, record } = result
      const reason = REJECTED[code]
      const detail = record.refund === undefined ? reason.detail : REFUNDED
      return { kind, code: reason.code, detail, charged: chargeStatus(record), payment: record.id }
    }
    case 'pending': {
      const detail = 'whether the payment has settled is not known yet'
      const payment = result.id
      return { kind, code: 'payment_pending', detail, charged: 'unknown', payment, retryAfter: 2 }
    }
    case 'disconnected':
      return { kind, code: 'payment_pending', detail: 'the request was abandoned', charged: 'no' }
    case 'unavailable': {
      const { code } = result
      const [detail, retryAfter] = code === 'ledger_lost' ? [LEDGER_LOST, 30] : [LEDGER_AWAY, 2]
      return { kind, code, detail, charged: 'unknown', retryAfter }
    }
  }
}

const LEDGER_AWAY = 'the record of payments cannot be reached now'
const LEDGER_LOST =
  'the record of payments has lost data, and nothing is sold until it was compared with the chain'

/** For senders of a payment, or its identifier, that was used for something else. */
const REJECTED = {
  payment_reused: {
    code: 'payment_reused',
    detail:
      'this payment was used before, for another request or for an answer that was delivered; it is charged once at most',
  },
  idempotency_conflict: {
    code: 'idempotency_conflict',
    detail: 'this idempotency key belongs to another request of the same payer; nothing was charged now',
  },
  body_differs: {
    code: 'idempotency_conflict',
    detail: 'this payment was used before, with another body or other parameters; nothing was charged now',
  },
} as const satisfies Record<string, { readonly code: ErrorCode; readonly detail: string }>

const REFUNDED = 'this payment was charged for nothing: its money goes back to the payer, and it buys nothing'
