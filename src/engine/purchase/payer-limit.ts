import type { Refusal } from '../base/errors.ts'
import { formatShort } from '../base/money.ts'
import { formatDuration } from '../base/duration.ts'
import type { PayerLimit } from '../catalog/catalog.ts'
import { factOf, type Ledger, type LimitedAmount } from '../ledger/ledger.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { LeasedPurchase } from './request.ts'
import type { PurchaseResult } from './result.ts'

/**
 * Buys within the payer's limit: over it, nothing is done and the reservation is deleted. Amounts are counted in the
 * ledger, under the payment, before the work: so they hold for all processes and restarts. What turns out to be uncharged
 * is not counted any more. A process that dies in between leaves its payment counted until the period is over.
 */
export async function withinLimit(
  purchase: LeasedPurchase,
  buy: () => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  const { deps, lease, request } = purchase
  const { ledger, payerLimit: limit, now, report } = deps
  if (limit === undefined) return buy()
  const { record } = lease
  const name = `bought:${record.payer}`
  const amount = { id: record.id, value: BigInt(record.amount), until: now() + limit.per }
  let fits: number | undefined
  try {
    fits = await fitsAt(purchase, name, amount, limit)
  } catch (fault) {
    lease.stopRenewal()
    throw fault
  }
  if (fits !== undefined) {
    await lease.delete()
    request.payment.release()
    return { kind: 'refused', refusal: refusalOf(limit, fits - now()) }
  }
  const result = await buy()
  const charged = isUncharged(result, lease.record) ? 0n : BigInt(lease.record.amount)
  if (charged < amount.value) await lower(ledger, name, amount, charged, now()).catch(report)
  return result
}

/** What was charged counts in place of what was authorised; what was not charged does not count. */
async function lower(
  ledger: Ledger,
  name: string,
  amount: LimitedAmount,
  charged: bigint,
  now: number,
): Promise<void> {
  const { id, until } = amount
  if (charged > 0n) await ledger.addExpiring(name, factOf({ id, value: charged }), until)
  await ledger.addExpiring(name, factOf(amount), now)
}

/** Undefined when the amount is counted now; otherwise, when it would fit. */
async function fitsAt(
  { deps: { ledger, now } }: LeasedPurchase,
  name: string,
  amount: LimitedAmount,
  { calls: count, spend: sum, per }: PayerLimit,
): Promise<number | undefined> {
  const time = now()
  if (sum !== undefined && amount.value > sum) return time + per
  return ledger.addWithinLimit(name, amount, { count, sum }, time)
}

/** A payment whose answer waits for its settlement may still be charged when it comes again. */
function isUncharged({ kind }: PurchaseResult, { state }: PaymentRecord): boolean {
  if (kind === 'refused') return state !== 'fulfilled'
  return kind === 'failed' || kind === 'settlementFailed' || kind === 'disconnected'
}

function refusalOf({ calls, spend, per }: PayerLimit, wait: number): Refusal {
  const money = spend === undefined ? '' : ` and ${formatShort(spend)} USD`
  const most = `${calls} ${calls === 1 ? 'call' : 'calls'}${money} in ${formatDuration(per)}`
  return {
    code: 'payer_limit_reached',
    detail: `one payer may buy ${most}, and this call would exceed that; nothing was charged`,
    retryAfter: Math.max(1, Math.ceil(wait / 1_000)),
  }
}
