import type { Face } from '../catalog/catalog.ts'
import type { Arguments } from '../handler.ts'
import { isFree, reserve } from '../ledger/claim.ts'
import type { Purchase } from '../ledger/entry.ts'
import { buyerName, identifierName, LedgerError } from '../ledger/ledger.ts'
import type { Offer, Payment } from '../protocols/protocol.ts'
import { invoke, preflightCall, type ExecutionDeps } from './execution.ts'
import { chooseFlow, tooLate } from './flow.ts'
import {
  digestArguments,
  scopeOf,
  unreadyFailure,
  type Operations,
  type ServedOperation,
} from './operation.ts'
import { dedupeByIdentifier, findUndelivered } from './redelivery.ts'
import { replay } from './replay.ts'
import type {
  Fulfillment,
  PurchaseDeps,
  PurchaseRequest,
  PurchaseResult,
  VerifiedPurchase,
} from './request.ts'
import { start, withLease } from './settle-flow.ts'

export interface PaidCallDeps extends ExecutionDeps {
  readonly purchases: PurchaseDeps
}

/** A call of an operation with the payment that came with it, over whichever transport. */
export interface PaidCall {
  readonly payment: Payment
  readonly face: Face
  /** Absolute URL of what is asked for. */
  readonly resource: string
  readonly served: ServedOperation
  readonly operations: Operations
  /** Of the catalog that makes the offer. */
  readonly revision: string
  readonly args: Arguments
  /** Aborted when the client has gone away. */
  readonly gone: AbortSignal
}

/** `unavailable`: what the ledger knows of this payment could not be asked. */
export type PaidCallResult = PurchaseResult | { readonly kind: 'unavailable' }

/** Buys one call: a payment is good for the operation and its arguments, however they came. */
export async function purchaseCall(deps: PaidCallDeps, call: PaidCall): Promise<PaidCallResult> {
  const { payment, face, resource, served, args, revision, gone } = call
  const { operation } = served
  const digest = digestArguments(operation, args)
  if (operation.price === undefined) throw new Error('what is paid for has a price')
  const offer = { face, resource, scope: scopeOf(operation, digest), price: operation.price }
  const fulfillment = fulfillmentOf(deps, call)
  try {
    return await purchase(deps.purchases, { payment, offer, revision, digest, fulfillment, gone })
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    deps.purchases.report(fault)
    return { kind: 'unavailable' }
  }
}

function fulfillmentOf(
  deps: PaidCallDeps,
  { payment: paid, face, served, operations, args }: PaidCall,
): Fulfillment {
  const { check, store, readiness } = served
  const unready = unreadyFailure(readiness)
  // The ledger is asked first: what was paid for while the operation was served is answered all the same.
  const refuse = (): Promise<never> => Promise.reject(unready)
  if (unready !== undefined) return { run: refuse, preflight: refuse, store }
  return {
    run: ({ payment: id, payer, account, timeLeft }) => {
      const payment = { id, protocol: paid.protocol.name, network: paid.network, payer, account }
      const caller = { payment, signer: undefined }
      return invoke(deps, { face, served, operations, args, caller, timeLeft })
    },
    preflight:
      check === undefined
        ? undefined
        : (timeLeft) => preflightCall(deps, { served, operations, args, timeLeft }, check),
    store,
  }
}

/** Takes the payment, does the work once, charges once, and answers everyone who holds the payment. */
export async function purchase(deps: PurchaseDeps, request: PurchaseRequest): Promise<PurchaseResult> {
  const { payment, offer } = request
  const known = await deps.ledger.get(payment.key)
  if (known !== undefined && !isFree(known, deps.now())) {
    const verified = await payment.verify()
    if (verified.kind === 'verified') return replay({ deps, request, verified }, known, buyIfOffered)
    // Who pays could not be asked: what became of the payment is not to be said either way.
    return verified.refusal.code === 'chain_unavailable' ? { kind: 'pending', id: known.id } : verified
  }
  const refusal = payment.check(offer, deps.now())
  const verified = await payment.verify()
  if (verified.kind === 'refused') return refusal === undefined ? verified : { kind: 'refused', refusal }
  // What was offered lately is asked of other processes: for those who have signed a payment, and for nobody else.
  if (refusal !== undefined && !(await fitsRecentOffer(deps, request))) return { kind: 'refused', refusal }
  return buy({ deps, request, verified })
}

/** While it waited for another purchase, its offer may have ended. */
async function buyIfOffered(purchase: VerifiedPurchase): Promise<PurchaseResult> {
  const { deps, request } = purchase
  const refusal = request.payment.check(request.offer, deps.now())
  if (refusal !== undefined && !(await fitsRecentOffer(deps, request))) return { kind: 'refused', refusal }
  return buy(purchase)
}

/** Whether the payment was signed for an offer that was withdrawn a moment ago. */
async function fitsRecentOffer(deps: PurchaseDeps, { payment, offer }: PurchaseRequest): Promise<boolean> {
  const recent = await deps.recentOffers(offer.face.operation.id)
  return recent.some((terms) => {
    const withdrawn: Offer = { ...offer, ...terms }
    return payment.check(withdrawn, deps.now()) === undefined
  })
}

/** A payment that has bought nothing yet. */
async function buy(purchase: VerifiedPurchase): Promise<PurchaseResult> {
  const { deps, request, verified } = purchase
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
  const { payment, offer, revision, digest } = request
  const { identifier } = payment
  const { payer, validBefore } = verified
  const operation = offer.face.operation.id
  return {
    key: payment.key,
    protocol: payment.protocol.name,
    network: payment.network,
    asset: payment.asset,
    payer,
    payee: payment.payee,
    seal: payment.seal,
    amount: payment.amount.toString(),
    validBefore,
    operation,
    digest,
    revision,
    token: payment.token,
    flow: await chooseFlow(purchase),
    redeliver: deps.redeliver,
    buyer: buyerName(payer, operation, digest),
    identifier: identifier === undefined ? undefined : identifierName(payer, identifier),
  }
}
