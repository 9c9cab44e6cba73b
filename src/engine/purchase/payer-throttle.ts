import type { Refusal } from '../base/errors.ts'
import { FAILURES_CLOSE_MS, UPFRONT_MS } from '../base/money-times.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { SETTLEMENT_FAILED } from '../payment/settlement.ts'

/** Records that a payer could not be charged after the work. */
export async function noteFailure(ledger: Ledger, payer: string, id: string, now: number): Promise<void> {
  await ledger.addExpiring(nameOf(payer), `${now} ${id}`, now + UPFRONT_MS + FAILURES_CLOSE_MS)
}

/**
 * Whether a payment for which work was done has failed for its payer. One that came too late to be sent, or was in no block
 * until it expired, has not: work ends early enough, so the network or our own account was late, and whose balance is gone
 * is seen before that.
 */
export function isPayersFailure(
  { validBefore }: Pick<PaymentRecord, 'validBefore'>,
  { code }: Refusal,
  now: number,
): boolean {
  if (code === 'deadline_too_short') return false
  return code !== SETTLEMENT_FAILED.refusal.code || now < validBefore
}

/** Whether a payer has to pay before the work. */
export async function isThrottled(ledger: Ledger, payer: string, now: number): Promise<boolean> {
  const facts = await ledger.listExpiring(nameOf(payer), now)
  // A payment may be noted twice: by the request that has seen it fail, and by recovery.
  const byPayment = new Map(facts.map((fact) => [fact.split(' ')[1], Number.parseInt(fact, 10)]))
  const times = Array.from(byPayment.values()).sort((a, b) => a - b)
  return times.some((time, place) => {
    const before = times[place - 1]
    return before !== undefined && time - before <= FAILURES_CLOSE_MS && now - time < UPFRONT_MS
  })
}

function nameOf(payer: string): string {
  return `failed:${payer}`
}
