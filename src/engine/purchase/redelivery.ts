import { readAnswer } from '../ledger/answers.ts'
import { acquireExpired } from '../ledger/lease.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { identifierName, isLeased } from '../ledger/payment-lifecycle.ts'
import type { Settlement } from '../payment/settlement.ts'
import {
  type ConnectedBuyers,
  type LeasedPurchase,
  type PurchaseDeps,
  type VerifiedPurchase,
} from './request.ts'
import type { Answered, PurchaseResult } from './result.ts'
import { conclude, finishWrite, resume, withLease } from './settlement-flow.ts'

/** How long a request waits for another one. */
const PATIENCE_MS = 45_000

/** Reads a record repeatedly until the result of the request is known. */
export async function poll<T>(
  { deps, request }: VerifiedPurchase,
  known: PaymentRecord,
  look: (record: PaymentRecord | undefined) => Promise<T | undefined>,
): Promise<T | PurchaseResult> {
  const deadline = deps.now() + PATIENCE_MS
  let record: PaymentRecord | undefined = known
  for (let pause = 10; ; pause = Math.min(pause * 1.5, 200)) {
    const seen = await look(record)
    if (seen !== undefined) return seen
    if (deps.now() > deadline || request.gone.aborted) return { kind: 'pending', id: known.id }
    await deps.sleep(pause)
    record = await deps.ledger.get(known.key)
  }
}

/** Makes a request count as a connection of a payment: what it buys is charged, and kept for it. */
export async function waitAsBuyer<T extends Found>(
  { deps: { buyers }, request: { gone } }: VerifiedPurchase,
  { id }: Pick<PaymentRecord, 'id'>,
  wait: () => Promise<T>,
): Promise<T> {
  buyers.connect(id, gone, 'waiting')
  let served: string | undefined
  try {
    const result = await wait()
    const found: Found = result
    if (found.kind === 'answered' || found.kind === 'streaming') {
      // The delivery to this connection is tracked too.
      served = found.record.id
      buyers.connect(served, gone, 'served')
    }
    return result
  } finally {
    if (served !== id) buyers.disconnect(id, gone)
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
  for (const record of undelivered) {
    if (record.key === payment.key || record.protocol !== payment.protocol.name) continue
    if (isAnotherPurchase(purchase, record) || isServedHere(deps, record)) continue
    const found = await waitAsBuyer(purchase, record, () =>
      poll(purchase, record, (current) => redeliver(purchase, current)),
    )
    if (found.kind !== 'free') return found
  }
  return { kind: 'new', unsold: undelivered.find((record) => isUnsold(record, deps.now())) }
}

/**
 * A buyer who was sent an answer, requests a new challenge and uses an identifier of its own wants the same call
 * again.
 */
function isAnotherPurchase({ request, verified }: VerifiedPurchase, record: PaymentRecord): boolean {
  const { identifier } = request
  const { token } = request.payment
  if (identifier === undefined || token === undefined) return false
  if (record.receipt === undefined || record.answer === undefined) return false
  return record.redeliveryToken !== token && record.identifier !== identifierName(verified.payer, identifier)
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
  record: PaymentRecord | undefined,
): Promise<Found | undefined> {
  if (record === undefined || !mayBeLost(purchase.deps, record)) return { kind: 'free' }
  return purchase.request.payment.protocol.isForAnother?.(record) ? undefined : endEarlier(purchase, record)
}

/** An answer for which a connected buyer of this process waits is not lost; of other processes nothing is known. */
function isServedHere({ owner, buyers, now }: PurchaseDeps, record: PaymentRecord): boolean {
  return record.owner === owner && isLeased(record, now()) && buyers.has(record.id)
}

/**
 * Not confirmed as delivered, and charged, or perhaps soon: the process that works on it may be dead, or its dispatch on the
 * way to the store.
 */
function mayBeLost({ buyers, now }: PurchaseDeps, record: PaymentRecord): boolean {
  const { state, receipt } = record
  if (receipt !== undefined) return !hasArrived(buyers, record) && isRedeliverable(record, now())
  return state === 'fulfilled' ? isLeased(record, now()) : state !== 'voided'
}

/**
 * Ends an earlier purchase with its own payment: delivers its answer if charged, voids it otherwise, which leaves
 * the payment of this request free. Undefined while another process holds it.
 */
export async function endEarlier(
  purchase: VerifiedPurchase,
  record: PaymentRecord,
): Promise<Found | undefined> {
  const lease = await acquireExpired(purchase.deps, record)
  if (lease === undefined) return undefined
  let free = false
  const result = await withLease({ ...purchase, lease }, async (leased) => {
    if (lease.record.receipt !== undefined) return resume(leased)
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

async function settlementOf({ request, lease: { record } }: LeasedPurchase): Promise<Settlement> {
  if (record.state === 'settling' || record.state === 'unknown')
    return request.payment.protocol.resolve(record)
  return { kind: 'failed', refusal: { code: 'settlement_failed', detail: 'nothing was sent to settle it' } }
}

/** Whether the answer has arrived, as far as this process knows. */
export function hasArrived(buyers: ConnectedBuyers, { state, id }: PaymentRecord): boolean {
  return state === 'sent' || buyers.hasArrived(id)
}

/** The result of a record with a receipt and a stored answer; undefined when the answer was lost. */
export async function answeredBy(
  { ledger }: Pick<PurchaseDeps, 'ledger'>,
  record: PaymentRecord,
): Promise<Answered | undefined> {
  const { receipt } = record
  if (receipt === undefined) return undefined
  const answer = await readAnswer(ledger.answers, record)
  return answer === undefined ? undefined : { kind: 'answered', record, answer, receipt }
}

/** Whether a settled payment is still within its redelivery period. */
export function isRedeliverable(
  { receipt, settledAt, redeliver, createdAt }: PaymentRecord,
  now: number,
): boolean {
  return receipt !== undefined && now - (settledAt ?? createdAt) < redeliver
}
