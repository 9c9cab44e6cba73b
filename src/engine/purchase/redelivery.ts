import { takeOver } from '../ledger/claim.ts'
import type { Entry } from '../ledger/entry.ts'
import { buyerName, identifierName } from '../ledger/ledger.ts'
import type { Settlement } from '../protocols/protocol.ts'
import { rollback } from './fulfillment.ts'
import { poll, type BuyAnew } from './replay.ts'
import {
  answeredBy,
  isRedeliverable,
  type LeasedPurchase,
  type PurchaseDeps,
  type PurchaseResult,
  type VerifiedPurchase,
} from './request.ts'
import { conclude, resume, withLease } from './settle-flow.ts'

/** How old a purchase may be whose answer is taken for lost. */
const LOST_MS = 600_000
/** Answers of one buyer that may be lost at once; older ones are given to their own payments only. */
const MOST_LOST = 20

/** Nothing is lost: the new payment buys. */
export interface NewPurchase {
  readonly kind: 'new'
  /** An earlier purchase of the same, which was worked for and could not be settled. */
  readonly unsold: Entry | undefined
}

/**
 * Stock clients never send a payment again: they meet a fresh 402 and sign anew. A buyer who has paid for the same thing a
 * moment ago, and is not known to have the answer, is given that one; the new payment stays unused.
 */
export async function findUndelivered(purchase: VerifiedPurchase): Promise<PurchaseResult | NewPurchase> {
  const { deps, request, verified } = purchase
  const { payment, offer, digest } = request
  const buyer = buyerName(verified.payer, offer.face.operation.id, digest)
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
function isAnotherPurchase({ request, verified }: VerifiedPurchase, entry: Entry): boolean {
  const { identifier, token } = request.payment
  if (identifier === undefined || token === undefined) return false
  if (entry.receipt === undefined || entry.answer === undefined) return false
  return entry.token !== token && entry.identifier !== identifierName(verified.payer, identifier)
}

/** Worked for, and nothing was sent to settle it: the network was away. */
function isUnsold({ state, answer, receipt, prepared, leaseUntil }: Entry, now: number): boolean {
  if (state !== 'fulfilled' || receipt !== undefined || leaseUntil > now) return false
  // What a handler has stored belongs to its own payment.
  return answer !== undefined && prepared === undefined
}

type Found = PurchaseResult | { readonly kind: 'free' }

/** What has become of a purchase, if it is lost; undefined while that is being decided. */
async function redeliver(purchase: VerifiedPurchase, entry: Entry | undefined): Promise<Found | undefined> {
  return entry === undefined || !mayBeLost(purchase.deps, entry) ? { kind: 'free' } : take(purchase, entry)
}

/**
 * Paid for, or perhaps, and not known to have arrived: from the dispatch on, for the process that sent it may be dead.
 * What a connected buyer of this process waits for is not lost; of other processes nobody knows.
 */
function mayBeLost({ owner, buyers, now }: PurchaseDeps, entry: Entry): boolean {
  const { id, state, receipt, leaseUntil } = entry
  if (entry.owner === owner && leaseUntil > now() && buyers.has(id)) return false
  if (receipt !== undefined) return state !== 'sent' && isRedeliverable(entry, now())
  return state === 'unknown' || state === 'settling'
}

/**
 * Ends an earlier purchase by its own payment: what that has paid for is given away, what it has not is forgotten, and
 * then the payment of this request is free to buy. Undefined while somebody is at it.
 */
async function take(purchase: VerifiedPurchase, entry: Entry): Promise<Found | undefined> {
  const lease = await takeOver(purchase.deps, entry)
  if (lease === undefined) return undefined
  let free = false
  const result = await withLease({ ...purchase, lease }, async (leased) => {
    if (lease.entry.receipt !== undefined) return resume(leased)
    const settlement = await settlementOf(leased)
    if (settlement.kind !== 'failed') return conclude(leased, settlement)
    await lease.void()
    await rollback(purchase.deps, purchase.request.fulfillment.store, lease)
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
  named: Entry,
  buyAnew: BuyAnew,
): Promise<PurchaseResult> {
  const { offer, digest } = purchase.request
  if (named.operation !== offer.face.operation.id || named.digest !== digest)
    return { kind: 'replayRejected', entry: named, code: 'identifier_reused' }
  const found = await poll(purchase, named, async (entry): Promise<Found | undefined> => {
    if (entry === undefined || entry.identifier !== named.identifier) return { kind: 'free' }
    return (await answeredBy(purchase.deps, entry)) ?? take(purchase, entry)
  })
  return found.kind === 'free' ? buyAnew(purchase) : found
}
