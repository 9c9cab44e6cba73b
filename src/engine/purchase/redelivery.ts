import { readAnswer } from '../ledger/answers.ts'
import { isReusable, acquireExpired } from '../ledger/lease.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { buyerKeyOf, identifierName } from '../ledger/payment-lifecycle.ts'
import type { Settlement } from '../protocols/protocol.ts'
import type {
  Answered,
  PurchaseResult,
  LeasedPurchase,
  PurchaseDeps,
  PurchaseRequest,
  VerifiedPurchase,
} from './request.ts'
import { conclude, finishWrite, resume, withLease } from './settlement-flow.ts'

/** Buys with a payment that was looked at before, if it still fits an offer. */
export type BuyAnew = (purchase: VerifiedPurchase) => Promise<PurchaseResult>

/** The same payment once more: it waits for the first, goes on for a dead one, or gets what was stored. */
export async function replay(
  purchase: VerifiedPurchase,
  known: PaymentRecord,
  buyAnew: BuyAnew,
): Promise<PurchaseResult> {
  const { deps, request } = purchase
  const { payment, gone } = request
  // Before its broadcast, nobody but the buyer can have seen the payment.
  const isBuyer = payment.token !== undefined || known.dispatch === undefined
  deps.buyers.connect(known.id, gone)
  const result = await poll(purchase, known, async (entry) => {
    if (entry === undefined || isReusable(entry, deps.now())) return buyAnew(purchase)
    // Asked each time: while this copy waited, the payment may have bought something else, or its answer have arrived.
    if (isForOther(request, entry) || !mayHaveAnswer(purchase, entry)) return reject(request, entry)
    if (payment.copies !== 'wait') return replaySingleUse(purchase, entry)
    // Who has seen it in the pool shows no token either: the connected buyer goes first.
    if (!isBuyer && entry.leaseUntil > deps.now()) return undefined
    return (await answeredBy(deps, entry)) ?? takeTurn(purchase, entry)
  }).finally(() => deps.buyers.disconnect(known.id, gone))
  // Its way to this copy is watched too.
  if (result.kind === 'answered') deps.buyers.connect(result.entry.id, gone)
  return result
}

/** A payment that is good for one answer: it is given again only when it is not known to have arrived. */
async function replaySingleUse(
  purchase: VerifiedPurchase,
  entry: PaymentRecord,
): Promise<PurchaseResult | undefined> {
  const { deps, request } = purchase
  if (entry.state === 'sent') return reject(request, entry)
  if (entry.leaseUntil <= deps.now()) return takeTurn(purchase, entry)
  // On its way to the buyer: whether it arrives is known in a moment.
  return entry.receipt !== undefined && entry.answer !== undefined ? undefined : reject(request, entry)
}

/** Goes on where a dead process, or an unknown settlement, has left the payment; undefined while somebody is at it. */
async function takeTurn(
  purchase: VerifiedPurchase,
  entry: PaymentRecord,
): Promise<PurchaseResult | undefined> {
  const lease = await acquireExpired(purchase.deps, entry)
  return lease === undefined ? undefined : withLease({ ...purchase, lease }, resume)
}

/** Bought something else, or is another authorization that was signed under the same nonce. */
function isForOther({ payment, offer, digest }: PurchaseRequest, entry: PaymentRecord): boolean {
  return (
    entry.authorizationHash !== payment.authorizationHash ||
    entry.operation !== offer.endpoint.operation.id ||
    entry.digest !== digest
  )
}

function reject({ payment, offer, digest }: PurchaseRequest, entry: PaymentRecord): PurchaseResult {
  const { id, method } = offer.endpoint.operation
  // The payment is the idempotency key of a call with effects.
  if (method !== 'GET' && entry.operation === id && entry.digest !== digest)
    return { kind: 'replayRejected', entry, code: 'body_differs' }
  return payment.copies === 'wait'
    ? { kind: 'replayRejected', entry, code: 'payment_reused' }
    : { kind: 'refused', refusal: payment.copies }
}

/**
 * The calldata of a payment is public from its broadcast on, so its signature proves nothing any more: copies need the
 * token of the challenge that the first one has shown. One that came without is answered while it is not known to have
 * been. After its settlement both hold for the time of redelivery.
 */
function mayHaveAnswer({ deps, request }: VerifiedPurchase, entry: PaymentRecord): boolean {
  if (entry.receipt !== undefined && !isRedeliverable(entry, deps.now())) return false
  return entry.redeliveryToken === undefined
    ? entry.state !== 'sent'
    : entry.redeliveryToken === request.payment.token
}

/** How long a request waits for what another one is doing. */
const PATIENCE_MS = 45_000

/** Looks at a record again and again, until it can be said what becomes of the request. */
async function poll<T>(
  { deps, request }: VerifiedPurchase,
  known: PaymentRecord,
  look: (entry: PaymentRecord | undefined) => Promise<T | undefined>,
): Promise<T | PurchaseResult> {
  const deadline = deps.now() + PATIENCE_MS
  let entry: PaymentRecord | undefined = known
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 200)) {
    const seen = await look(entry)
    if (seen !== undefined) return seen
    if (deps.now() > deadline || request.gone.aborted) return { kind: 'pending', id: known.id }
    await deps.sleep(pause)
    entry = await deps.ledger.get(known.key)
  }
}

/** How old a purchase may be whose answer is taken for lost. */
const LOST_MS = 600_000
/** Answers of one buyer that may be lost at once; older ones are given to their own payments only. */
const MOST_LOST = 20

/** Nothing is lost: the new payment buys. */
interface NewPurchase {
  readonly kind: 'new'
  /** An earlier purchase of the same, which was worked for and could not be settled. */
  readonly unsold: PaymentRecord | undefined
}

/**
 * Stock clients never send a payment again: they meet a fresh 402 and sign anew. A buyer who has paid for the same thing a
 * moment ago, and is not known to have the answer, is given that one; the new payment stays unused.
 */
export async function findUndelivered(purchase: VerifiedPurchase): Promise<PurchaseResult | NewPurchase> {
  const { deps, request, verified } = purchase
  const { payment, offer, digest } = request
  // A second call with effects may be meant: only an identifier of the buyer says that it is the same one.
  if (offer.endpoint.operation.method !== 'GET') return { kind: 'new', unsold: undefined }
  const buyer = buyerKeyOf(verified.payer, offer.endpoint.operation.id, digest)
  const bought = await deps.ledger.undelivered(buyer, deps.now() - LOST_MS, MOST_LOST)
  for (const entry of bought) {
    if (entry.key === payment.key || entry.protocol !== payment.protocol.name) continue
    if (isAnotherPurchase(purchase, entry)) continue
    const found = await poll(purchase, entry, (current) => redeliver(purchase, current))
    if (found.kind !== 'free') return found
  }
  return { kind: 'new', unsold: bought.find((entry) => isUnsold(entry, deps.now())) }
}

/**
 * A buyer who was sent an answer, asks for a fresh challenge and names the purchase by an identifier of its own wants the
 * same thing once more.
 */
function isAnotherPurchase({ request, verified }: VerifiedPurchase, entry: PaymentRecord): boolean {
  const { identifier, token } = request.payment
  if (identifier === undefined || token === undefined) return false
  if (entry.receipt === undefined || entry.answer === undefined) return false
  return entry.redeliveryToken !== token && entry.identifier !== identifierName(verified.payer, identifier)
}

/** Worked for, and nothing was sent to settle it: the network was away. */
function isUnsold({ state, answer, receipt, pendingWrite, leaseUntil }: PaymentRecord, now: number): boolean {
  if (state !== 'fulfilled' || receipt !== undefined || leaseUntil > now) return false
  // What a handler has stored belongs to its own payment.
  return answer !== undefined && pendingWrite === undefined
}

type Found = PurchaseResult | { readonly kind: 'free' }

/** What has become of a purchase, if it is lost; undefined while that is being decided. */
async function redeliver(
  purchase: VerifiedPurchase,
  entry: PaymentRecord | undefined,
): Promise<Found | undefined> {
  return entry === undefined || !mayBeLost(purchase.deps, entry) ? { kind: 'free' } : take(purchase, entry)
}

/**
 * Paid for, or perhaps, and not known to have arrived: from the dispatch on, for the process that sent it may be dead.
 * What a connected buyer of this process waits for is not lost; of other processes nobody knows.
 */
function mayBeLost({ owner, buyers, now }: PurchaseDeps, entry: PaymentRecord): boolean {
  const { id, state, receipt, leaseUntil } = entry
  if (entry.owner === owner && leaseUntil > now() && buyers.has(id)) return false
  if (receipt !== undefined) return state !== 'sent' && isRedeliverable(entry, now())
  return state === 'unknown' || state === 'settling'
}

/**
 * Ends an earlier purchase by its own payment: what that has paid for is given away, what it has not is forgotten, and
 * then the payment of this request is free to buy. Undefined while somebody is at it.
 */
async function take(purchase: VerifiedPurchase, entry: PaymentRecord): Promise<Found | undefined> {
  const lease = await acquireExpired(purchase.deps, entry)
  if (lease === undefined) return undefined
  let free = false
  const result = await withLease({ ...purchase, lease }, async (leased) => {
    if (lease.entry.receipt !== undefined) return resume(leased)
    const settlement = await settlementOf(leased)
    if (settlement.kind !== 'failed') return conclude(leased, settlement)
    await lease.void()
    await finishWrite(purchase.deps, lease, purchase.request.fulfillment.store, 'abort')
    free = true
    return { kind: 'refused', refusal: settlement.refusal }
  })
  return free ? { kind: 'free' } : result
}

async function settlementOf({ request, lease: { entry } }: LeasedPurchase): Promise<Settlement> {
  if (entry.state === 'settling' || entry.state === 'unknown') return request.payment.protocol.resolve(entry)
  return { kind: 'failed', refusal: { code: 'settlement_failed', detail: 'nothing was sent to settle it' } }
}

/** A new payment under the identifier of another one: for the same request it shares the answer, and is not charged. */
export async function dedupeByIdentifier(
  purchase: VerifiedPurchase,
  named: PaymentRecord,
  buyAnew: BuyAnew,
): Promise<PurchaseResult> {
  const { offer, digest } = purchase.request
  if (named.operation !== offer.endpoint.operation.id || named.digest !== digest)
    return { kind: 'replayRejected', entry: named, code: 'idempotency_conflict' }
  const found = await poll(purchase, named, async (entry): Promise<Found | undefined> => {
    if (entry === undefined || entry.identifier !== named.identifier) return { kind: 'free' }
    return (await answeredBy(purchase.deps, entry)) ?? take(purchase, entry)
  })
  return found.kind === 'free' ? buyAnew(purchase) : found
}

/** The result of a record that has both its receipt and its answer, unless that was lost. */
async function answeredBy(
  { ledger }: Pick<PurchaseDeps, 'ledger'>,
  entry: PaymentRecord,
): Promise<Answered | undefined> {
  const { receipt } = entry
  if (receipt === undefined) return undefined
  const answer = await readAnswer(ledger.answers, entry)
  return answer === undefined ? undefined : { kind: 'answered', entry, answer, receipt }
}

/** Whether a settled payment is still answered again. */
export function isRedeliverable(
  { receipt, settledAt, redeliver, createdAt }: PaymentRecord,
  now: number,
): boolean {
  return receipt !== undefined && now - (settledAt ?? createdAt) < redeliver
}
