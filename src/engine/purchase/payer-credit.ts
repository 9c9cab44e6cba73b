import { factOf, type Ledger } from '../ledger/ledger.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { noteFailure } from './payer-throttle.ts'
import type { LeasedPurchase } from './request.ts'

/** What a payer owes for one stream while it is sent. */
export interface Credit {
  /** It is paid, or was not used. */
  end(): Promise<void>
}

/** A payment that ends earlier than its offer allows leaves its stream less time than others have. */
const EARLIER_MS = 10_000

/** An hour, in which losses count. */
const LOSS_MS = 3_600_000

/**
 * Credit for a stream that its meter prices at its end. Only where a stream without its usage has a price too: otherwise a
 * buyer who has it left out, or breaks it off, has all of it for nothing. Undefined: it is paid first, and sent whole.
 */
export async function takeCredit(purchase: LeasedPurchase): Promise<Credit | undefined> {
  const { deps, lease, verified, request } = purchase
  const { endpoint } = request.offer
  const { meter, response } = endpoint.operation
  const { payment, fulfillment } = request
  if (endpoint.kind === 'tool' || !response.stream || meter?.if_missing === undefined) return undefined
  if (payment.commit !== undefined || fulfillment.store !== undefined) return undefined
  const { ledger, now, streamCredit: terms } = deps
  if (verified.validBefore - now() < terms.validity - EARLIER_MS) return undefined
  const { id, payer, authorizedAmount } = lease.record
  const { amount: lost } = await unpaidStreams(ledger, now())
  if (lost >= terms.loss || BigInt(authorizedAmount) > terms.spend) return undefined
  const name = `credit:${payer}`
  const amount = { id, value: BigInt(authorizedAmount), until: verified.validBefore }
  const limit = { count: terms.streams, sum: terms.spend }
  if (terms.streams === 0 || (await ledger.addWithinLimit(name, amount, limit, now())) !== undefined)
    return undefined
  return {
    end: async () => {
      await ledger.addExpiring(name, factOf(amount), now()).catch(deps.report)
    },
  }
}

/** Streams that were sent on credit and not paid within the last hour; `amount` in atomic units. */
export async function unpaidStreams(
  ledger: Pick<Ledger, 'listExpiring'>,
  now: number,
): Promise<{ readonly count: number; readonly amount: bigint }> {
  const facts = await ledger.listExpiring(UNPAID, now)
  const amount = facts.reduce((sum, fact) => sum + BigInt(fact.split(' ')[1] ?? 0), 0n)
  return { count: facts.length, amount }
}

/** Counts a stream that was sent and is not paid. */
export async function noteUnpaid(ledger: Ledger, { id, amount }: PaymentRecord, now: number): Promise<void> {
  await ledger.addExpiring(UNPAID, factOf({ id: `${id}:${now}`, value: BigInt(amount) }), now + LOSS_MS)
}

/** A payer who has withdrawn the money for a stream buys nothing more after the work for an hour. */
export async function suspend(ledger: Ledger, { id, payer }: PaymentRecord, now: number): Promise<void> {
  for (const name of [id, `${id}:credit`]) await noteFailure(ledger, payer, name, now)
}

const UNPAID = 'unpaid-streams'
