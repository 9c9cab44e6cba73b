import { SETTLING_MS, SHORTEST_WORK_MS, UPFRONT_MS } from '../base/money-times.ts'
import type { Refusal } from '../base/errors.ts'
import type { SettleOrder } from '../ledger/payment-record.ts'
import { isStreaming } from './execution.ts'
import { isThrottled } from './payer-throttle.ts'
import type { VerifiedPurchase, PurchaseDeps, Verified } from './request.ts'

/**
 * Settles before the work if the catalog says so, the work would outlast the payment, the answer is a stream, or the
 * payer's settlements have failed; after it where only then the price is known.
 */
export async function chooseSettleOrder({ deps, request, verified }: VerifiedPurchase): Promise<SettleOrder> {
  const { endpoint } = request.offer
  const { settle, timeout, meter } = endpoint.operation
  if (meter !== undefined) return 'after'
  if (settle === 'upfront' || timeout > request.payment.protocol.longestWork || isStreaming(endpoint))
    return 'upfront'
  return (await isThrottled(deps.ledger, verified.payer, deps.now())) ? 'upfront' : 'after'
}

/** Milliseconds of work after which the payment can still be settled. */
export function timeToWork({ now }: Pick<PurchaseDeps, 'now'>, { validBefore }: Verified): number {
  return validBefore - now() - SETTLING_MS
}

/** Whether the payment expires before it could be worked for and settled. */
export function tooLate(deps: PurchaseDeps, order: SettleOrder, verified: Verified): Refusal | undefined {
  if (timeToWork(deps, verified) >= (order === 'upfront' ? 0 : SHORTEST_WORK_MS)) return undefined
  return {
    code: 'deadline_too_short',
    detail: 'the payment expires before the work could be done and settled',
  }
}

/** A payer whose settlements have failed pays before the work, which a metered price does not allow. */
export async function suspensionOf({
  deps,
  request: { offer },
  verified,
}: VerifiedPurchase): Promise<Refusal | undefined> {
  if (offer.endpoint.operation.meter === undefined) return undefined
  if (!(await isThrottled(deps.ledger, verified.payer, deps.now()))) return undefined
  return {
    code: 'payer_suspended',
    detail: 'payments of this payer have failed after the work: it buys nothing metered for an hour',
    retryAfter: UPFRONT_MS / 1_000,
  }
}
