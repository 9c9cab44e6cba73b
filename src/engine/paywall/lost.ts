import { takeOver, type Claim } from '../ledger/claim.ts'
import type { Entry } from '../ledger/entry.ts'
import { buyerName, identifierName } from '../ledger/ledger.ts'
import type { Payment, Settlement } from '../protocols/protocol.ts'
import type { BuyAnew } from './again.ts'
import {
  deliverable,
  isRemembered,
  type Outcome,
  type Paywall,
  type Purchasing,
  type Verified,
} from './paywall.ts'
import { conclude, holding, proceed } from './sale.ts'
import { wait } from './wait.ts'
import { undo } from './work.ts'

/** How old a purchase may be whose answer is taken for lost. */
const LOST_MS = 600_000
/** Answers of one buyer that may be lost at once; older ones are given to their own payments only. */
const MOST_LOST = 20

/** Nothing is lost: the new payment buys. `unsold`: an earlier purchase that was worked for and could not be settled. */
export interface NewPurchase {
  readonly kind: 'new'
  readonly unsold: Entry | undefined
}

/**
 * Stock clients never send a payment again: they meet a fresh 402 and sign anew. Whoever has paid for the same thing a
 * moment ago, and is not known to have the answer, is given that one; the new payment stays unused.
 */
export async function findLost(
  paywall: Paywall,
  buying: Purchasing,
  verified: Verified,
): Promise<Outcome | NewPurchase> {
  const { payment, offer, digest } = buying
  const buyer = buyerName(verified.payer, offer.face.operation.id, digest)
  const bought = await paywall.ledger.undelivered(buyer, paywall.now() - LOST_MS, MOST_LOST)
  for (const entry of bought) {
    if (entry.key === payment.key || entry.protocol !== payment.protocol.name) continue
    if (isAnotherPurchase(payment, verified, entry)) continue
    const found = await wait(paywall, buying, entry, (now) => follow(paywall, buying, now, verified))
    if (found.kind !== 'free') return found
  }
  return { kind: 'new', unsold: bought.find((entry) => isUnsold(entry, paywall.now())) }
}

/**
 * Whoever has had an answer sent, asks for a fresh challenge and names the purchase by an identifier of its own wants the
 * same thing once more.
 */
function isAnotherPurchase({ identifier, token }: Payment, { payer }: Verified, entry: Entry): boolean {
  if (identifier === undefined || token === undefined) return false
  if (entry.answer === undefined || entry.receipt === undefined) return false
  return entry.token !== token && entry.identifier !== identifierName(payer, identifier)
}

/** Worked for, and nothing was sent to settle it: the network was away. */
function isUnsold({ state, answer, receipt, prepared, leaseUntil }: Entry, now: number): boolean {
  if (state !== 'fulfilled' || receipt !== undefined || leaseUntil > now) return false
  // What a handler has stored belongs to its own payment.
  return answer !== undefined && prepared === undefined
}

/** What has become of a purchase, if it is lost; undefined while that is being decided. */
async function follow(
  paywall: Paywall,
  buying: Purchasing,
  entry: Entry | undefined,
  verified: Verified,
): Promise<Finished | undefined> {
  if (entry === undefined || !mayBeLost(paywall, entry)) return { kind: 'free' }
  const claim = await takeOver(paywall, entry)
  return claim === undefined ? undefined : finish(paywall, buying, claim, verified)
}

/**
 * Paid for, or perhaps, and not known to have arrived: from the dispatch on, for whoever sent it may be dead. What a
 * living connection of this process waits for is not lost; of other processes nobody knows.
 */
function mayBeLost({ owner, attendance, now }: Paywall, entry: Entry): boolean {
  const { id, state, receipt, leaseUntil } = entry
  if (entry.owner === owner && leaseUntil > now() && attendance.has(id)) return false
  if (receipt !== undefined) return state !== 'sent' && isRemembered(entry, now())
  return state === 'unknown' || state === 'settling'
}

type Finished = Outcome | { readonly kind: 'free' }

/**
 * Ends a purchase by its own payment, which is not the one of this request: what it has paid for is given away, what it
 * has not is forgotten, and then the payment of this request is free to buy.
 */
async function finish(
  paywall: Paywall,
  buying: Purchasing,
  claim: Claim,
  verified: Verified,
): Promise<Finished> {
  let free = false
  const outcome = await holding(paywall, buying, claim, async () => {
    const settlement = await settlementOf(buying, claim.entry)
    if (claim.entry.receipt !== undefined) return proceed(paywall, buying, claim, verified)
    if (settlement.kind !== 'failed') return conclude(paywall, buying, claim, verified, settlement)
    await claim.void()
    await undo(paywall, buying.job.store, claim)
    free = true
    return { kind: 'refused', refusal: settlement.refusal }
  })
  return free ? { kind: 'free' } : outcome
}

async function settlementOf({ payment }: Purchasing, entry: Entry): Promise<Settlement> {
  const { state, receipt } = entry
  if (receipt !== undefined) return { kind: 'settled', receipt }
  if (state === 'settling' || state === 'unknown') return payment.protocol.resolve(entry)
  return { kind: 'failed', refusal: { code: 'settlement_failed', detail: 'nothing was sent to settle it' } }
}

/** A new payment under the identifier of another one: for the same request it shares the answer, and is not charged. */
export async function shareIdentifier(
  paywall: Paywall,
  buying: Purchasing,
  standing: Entry,
  verified: Verified,
  anew: BuyAnew,
): Promise<Outcome> {
  const { offer, digest } = buying
  if (standing.operation !== offer.face.operation.id || standing.digest !== digest)
    return { kind: 'reused', entry: standing, code: 'identifier_reused' }
  const found = await wait(paywall, buying, standing, async (entry): Promise<Finished | undefined> => {
    if (entry === undefined || entry.identifier !== standing.identifier) return { kind: 'free' }
    const stored = await deliverable(paywall, entry)
    if (stored !== undefined) return stored
    const claim = await takeOver(paywall, entry)
    return claim === undefined ? undefined : finish(paywall, buying, claim, verified)
  })
  return found.kind === 'free' ? anew(paywall, buying, verified) : found
}
