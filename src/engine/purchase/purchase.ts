import type { Catalog, Endpoint, Operation } from '../catalog/catalog.ts'
import { type PriceRule, type Quote, quotePrice, tryRule } from '../catalog/price.ts'
import type { IgnoredParameter } from '../catalog/validator.ts'
import type { Arguments } from '../handler.ts'
import { canonicalJson, type Json } from '../json.ts'
import { isReusable, reserve, type LeaseContext } from '../ledger/lease.ts'
import type { Purchase } from '../ledger/payment-record.ts'
import { buyerKeyOf, identifierName } from '../ledger/payment-lifecycle.ts'
import { LedgerError } from '../errors.ts'
import { toMicros } from '../money.ts'
import type { Detection, Offer, OfferTerms, Payment, Refusal } from '../protocols/protocol.ts'
import {
  digestArguments,
  invoke,
  preflightCall,
  scopeOf,
  unreadyFailure,
  type ExecutionDeps,
  type Operations,
  type ServedOperation,
} from './execution.ts'
import type {
  PurchaseResult,
  Fulfillment,
  PurchaseDeps,
  PurchaseRequest,
  Verified,
  VerifiedPurchase,
} from './request.ts'
import { dedupeByIdentifier } from './idempotency.ts'
import { findUndelivered } from './redelivery.ts'
import { replay } from './replay.ts'
import { chooseFlow, start, tooLate, withLease } from './settlement-flow.ts'

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
  return quotePrice(price, args)
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
  const { payment, endpoint, resource, served, args, quote, revision, gone, contentDigest } = call
  const { operation } = served
  const digest = digestArguments(operation, args)
  const { scope = scopeOf(operation, digest) } = call
  const offer = { endpoint, resource, scope, contentDigest, price: quote.amount }
  const identifier = payment.identifier ?? identifierOf(operation, args)
  const fulfillment = fulfillmentOf(deps, call)
  const request = { payment, offer, revision, args, digest, identifier, fulfillment, gone }
  try {
    return await purchase(deps.purchases, request)
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    deps.purchases.report(fault)
    return { kind: 'unavailable' }
  }
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
  { payment: paid, endpoint, served, operations, args, ignored }: PaidCall,
): Fulfillment {
  const { check, store, readiness } = served
  const unready = unreadyFailure(readiness)
  // The ledger is read first: a call that was paid while the operation was ready is answered anyway.
  const refuse = (): Promise<never> => Promise.reject(unready)
  if (unready !== undefined) return { run: refuse, preflight: refuse, store }
  return {
    run: ({ payment: id, payer, account, timeLeft }) => {
      const payment = { id, protocol: paid.protocol.name, network: paid.network, payer, account }
      const caller = { payment, signer: undefined }
      return invoke(deps, { endpoint, served, operations, args, ignored, caller, timeLeft })
    },
    preflight:
      check === undefined
        ? undefined
        : (timeLeft) => preflightCall(deps, { served, operations, args, timeLeft }, check),
    store,
  }
}

/** Why a payment would be refused, before anything else is done for its request. */
export async function preverify(deps: PurchaseDeps, payment: Payment): Promise<Refusal | undefined> {
  const verified = await payment.verify()
  if (verified.kind === 'refused') return verified.refusal
  try {
    // A payment that was used already may still be owed its answer.
    if ((await deps.ledger.get(payment.key)) !== undefined) return undefined
    return isDenied(deps, verified) ? DENIED : await payment.simulate()
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    deps.report(fault)
    return { code: 'ledger_unavailable', detail: 'the record of payments cannot be reached now' }
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
  return denied.has(payer.toLowerCase())
}

/** Accepts a payment: runs the handler once, charges once, and answers every request with this payment. */
export async function purchase(deps: PurchaseDeps, request: PurchaseRequest): Promise<PurchaseResult> {
  const { payment, offer } = request
  const known = await deps.ledger.get(payment.key)
  if (known !== undefined && !isReusable(known, deps.now())) {
    const verified = await payment.verify()
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
  const verified = await payment.verify()
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
  const [earlier, purchased] = await Promise.all([findUndelivered(purchase), describe(purchase)])
  if (earlier.kind !== 'new') return earlier
  const refusal = tooLate(deps, purchased.flow, verified)
  if (refusal !== undefined) return { kind: 'refused', refusal }
  const reservation = await reserve(deps, purchased)
  if (reservation.kind === 'claimed')
    return withLease({ ...purchase, lease: reservation.claim }, (leased) => start(leased, earlier.unsold))
  const { entry } = reservation
  return entry.key === request.payment.key
    ? replay(purchase, entry, buyIfOffered)
    : dedupeByIdentifier(purchase, entry, buyIfOffered)
}

async function describe(purchase: VerifiedPurchase): Promise<Purchase> {
  const { deps, request, verified } = purchase
  const { payment, offer, revision, digest, identifier } = request
  const { payer, validBefore } = verified
  const operation = offer.endpoint.operation.id
  return {
    key: payment.key,
    protocol: payment.protocol.name,
    network: payment.network,
    asset: payment.asset,
    payer,
    payee: payment.payee,
    authorizationHash: payment.authorizationHash,
    amount: payment.amount.toString(),
    validBefore,
    operation,
    digest,
    revision,
    redeliveryToken: payment.token,
    flow: await chooseFlow(purchase),
    redeliver: deps.redeliver,
    buyerKey: buyerKeyOf(payer, operation, digest),
    identifier: identifier === undefined ? undefined : identifierName(payer, identifier),
  }
}

/** How often a process says that it still makes its offers: what it offered until it was killed is known this exactly. */
export const OFFERING_MS = 20_000

/** Where the processes of a ledger tell each other what they offer. */
const OFFERS = 'offers'

/** However many payments do not fit, the ledger is asked once in this time. */
const MEMO_MS = 1_000

interface Fact {
  /** By operation: micro-dollars, or the rule. */
  readonly prices: Readonly<Record<string, string | PriceRule | undefined>>
  readonly timeoutSeconds?: number
}

/**
 * Offers that buyers may have signed a moment ago. Every process writes its offers down for the others and for the one
 * that comes after it, so that a change of price or timeout, a restart or an older process next to a newer one fails
 * nobody’s payment.
 */
export class RecentOffers {
  readonly #deps: Pick<LeaseContext, 'ledger' | 'owner' | 'now'>
  #memo: { readonly until: number; readonly facts: Promise<readonly Fact[]> } | undefined

  constructor(deps: Pick<LeaseContext, 'ledger' | 'owner' | 'now'>) {
    this.#deps = deps
  }

  /** This is offered now; to be said again before `OFFERING_MS` have passed. */
  offer(catalog: Catalog): Promise<void> {
    return this.#remember(catalog, OFFERING_MS + catalog.payments.repriceGrace)
  }

  /** This is offered no more; `grace` is how long it is honoured, in milliseconds. */
  withdraw(catalog: Catalog, grace: number): Promise<void> {
    return this.#remember(catalog, grace)
  }

  /** How a call was offered lately, by one process or another. */
  async of(
    { id, parameters }: Pick<Operation, 'id' | 'parameters'>,
    args: Arguments,
  ): Promise<readonly OfferTerms[]> {
    const facts = await this.#recall()
    const known = new Set(['body', ...parameters.map(({ name }) => name)])
    return facts.flatMap(({ prices, timeoutSeconds }) => {
      const offered = prices[id]
      if (offered === undefined) return []
      const price =
        typeof offered === 'string'
          ? toMicros(BigInt(offered))
          : [...offered.per, ...offered.by].every(({ argument }) => known.has(argument))
            ? tryRule(offered, args)
            : undefined
      if (price === undefined) return []
      return { price, ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }) }
    })
  }

  #recall(): Promise<readonly Fact[]> {
    const { ledger, now } = this.#deps
    const time = now()
    if (this.#memo === undefined || this.#memo.until <= time) {
      const facts = ledger
        .listExpiring(OFFERS, time)
        .then((texts) => texts.map((text): Fact => JSON.parse(text)))
      this.#memo = { until: time + MEMO_MS, facts }
      facts.catch(() => (this.#memo = undefined))
    }
    return this.#memo.facts
  }

  async #remember({ operations, payments: { x402 } }: Catalog, ms: number): Promise<void> {
    const { ledger, owner, now } = this.#deps
    const prices = operations.flatMap(({ id, price }): [string, Json][] =>
      price === undefined ? [] : [[id, typeof price === 'object' ? price.rule : price.toString()]],
    )
    // By process: one that stops offering a price must not take it back for another that still does.
    const fact = canonicalJson({
      by: owner,
      prices: Object.fromEntries(prices),
      ...(x402 === undefined ? {} : { timeoutSeconds: Math.floor(x402.timeout / 1000) }),
    })
    if (prices.length > 0) await ledger.addExpiring(OFFERS, fact, now() + ms)
    this.#memo = undefined
  }
}
