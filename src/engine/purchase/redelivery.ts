import { readAnswer } from '../ledger/answers.ts'
import { acquireExpired } from '../ledger/lease.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { identifierName } from '../ledger/payment-lifecycle.ts'
import type { Settlement } from '../payment/settlement.ts'
import { type LeasedPurchase, type PurchaseDeps, type VerifiedPurchase } from './request.ts'
import { type Answered, type PurchaseResult } from './result.ts'
import { conclude, finishWrite, resume, withLease } from './settlement-flow.ts'

/** How long a request waits for another one. */
const PATIENCE_MS = 45_000

/** Reads a record repeatedly until the result of the request is known. */
export async function poll<T>(
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

/** No answer was lost: the new payment buys one. */
export interface NewPurchase {
  readonly kind: 'new'
  /** An earlier equal purchase with an answer that could not be settled. */
  readonly unsold: PaymentRecord | undefined
}

/**
 * Stock clients never send a payment again: after a new 402 they sign a new one. A buyer with an equal, recent
 * purchase whose delivery is unconfirmed gets that answer; the new payment stays unused.
 */
export async function redeliverAny(
  purchase: VerifiedPurchase,
  undelivered: readonly PaymentRecord[],
): Promise<PurchaseResult | NewPurchase> {
  const { deps, request } = purchase
  const { payment } = request
  for (const entry of undelivered) {
    if (entry.key === payment.key || entry.protocol !== payment.protocol.name) continue
    if (isAnotherPurchase(purchase, entry)) continue
    const found = await poll(purchase, entry, (current) => redeliver(purchase, current))
    if (found.kind !== 'free') return found
  }
  return { kind: 'new', unsold: undelivered.find((entry) => isUnsold(entry, deps.now())) }
}

/**
 * A buyer who was sent an answer, requests a new challenge and uses an identifier of its own wants the same call
 * again.
 */
function isAnotherPurchase({ request, verified }: VerifiedPurchase, entry: PaymentRecord): boolean {
  const { identifier } = request
  const { token } = request.payment
  if (identifier === undefined || token === undefined) return false
  if (entry.receipt === undefined || entry.answer === undefined) return false
  return entry.redeliveryToken !== token && entry.identifier !== identifierName(verified.payer, identifier)
}

/** Answered, and nothing was sent to settle it: the network was unavailable. */
function isUnsold({ state, answer, receipt, pendingWrite, leaseUntil }: PaymentRecord, now: number): boolean {
  if (state !== 'fulfilled' || receipt !== undefined || leaseUntil > now) return false
  // A pending write belongs to its own payment.
  return answer !== undefined && pendingWrite === undefined
}

export type Found = PurchaseResult | { readonly kind: 'free' }

/** The result of an earlier purchase if it is lost; undefined while another process decides that. */
async function redeliver(
  purchase: VerifiedPurchase,
  entry: PaymentRecord | undefined,
): Promise<Found | undefined> {
  return entry === undefined || !mayBeLost(purchase.deps, entry)
    ? { kind: 'free' }
    : endEarlier(purchase, entry)
}

/**
 * Possibly charged and not confirmed as delivered, from the dispatch on: the process that sent it may be dead. An
 * answer for which a connected buyer of this process waits is not lost; of other processes nothing is known.
 */
function mayBeLost({ owner, buyers, now }: PurchaseDeps, entry: PaymentRecord): boolean {
  const { id, state, receipt, leaseUntil } = entry
  if (entry.owner === owner && leaseUntil > now() && buyers.has(id)) return false
  if (receipt !== undefined) return state !== 'sent' && isRedeliverable(entry, now())
  return state === 'unknown' || state === 'settling'
}

/**
 * Ends an earlier purchase with its own payment: delivers its answer if charged, voids it otherwise, which leaves
 * the payment of this request free. Undefined while another process holds it.
 */
export async function endEarlier(
  purchase: VerifiedPurchase,
  entry: PaymentRecord,
): Promise<Found | undefined> {
  const lease = await acquireExpired(purchase.deps, entry)
  if (lease === undefined) return undefined
  let free = false
  const result = await withLease({ ...purchase, lease }, async (leased) => {
    if (lease.entry.receipt !== undefined) return resume(leased)
    const settlement = await settlementOf(leased)
    if (settlement.kind !== 'failed') return conclude(leased, settlement)
    if (settlement.block !== undefined) await lease.failedIn(settlement.block)
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

/** The result of a record with a receipt and a stored answer; undefined when the answer was lost. */
export async function answeredBy(
  { ledger }: Pick<PurchaseDeps, 'ledger'>,
  entry: PaymentRecord,
): Promise<Answered | undefined> {
  const { receipt } = entry
  if (receipt === undefined) return undefined
  const answer = await readAnswer(ledger.answers, entry)
  return answer === undefined ? undefined : { kind: 'answered', entry, answer, receipt }
}

/** Whether a settled payment is still within its redelivery period. */
export function isRedeliverable(
  { receipt, settledAt, redeliver, createdAt }: PaymentRecord,
  now: number,
): boolean {
  return receipt !== undefined && now - (settledAt ?? createdAt) < redeliver
}
