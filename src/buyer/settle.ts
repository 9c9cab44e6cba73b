import { type Charged } from '../engine/base/errors.ts'
import { isJsonObject, type Json } from '../engine/base/json.ts'
import { type Micros, toMicros } from '../engine/base/money.ts'
import type { BuyerRuntime } from './buyer-runtime.ts'
import { metaOf, type Offer, type PaymentReceipt, type Reply } from './protocols/paying-protocol.ts'
import { PROTOCOLS } from './protocols/all.ts'
import { type Answer, isAnswered } from './http-call.ts'

/** How often the same payment is sent while the outcome is unknown: it is charged once at most. */
const TRIES = 5

interface SettleRequest<T extends Answer> {
  /** Requests with the payment; undefined when no answer arrived. */
  readonly ask: () => Promise<T | undefined>
  readonly payment: SignedPayment
  /** 1 for a payment that was never sent before. */
  readonly attempt: number
  readonly tell: (line: string) => void
  readonly sleep: BuyerRuntime['sleep']
}

/** What was signed. */
export type SignedPayment = Pick<Offer, 'protocol' | 'amount' | 'amountIs'>

/** What became of a payment. */
export interface Settled<T extends Answer> {
  /** The last one. */
  readonly answer: T | undefined
  readonly charged: Charged
  /** What was charged; while that is not known, the most that may have been. */
  readonly amount: Micros
  readonly transaction: string | undefined
  /** What a metered amount consists of, as the seller has written it. */
  readonly usage?: Json | undefined
}

/** Sends a payment until its outcome is known, a few times at most. */
export async function settle<T extends Answer>(order: SettleRequest<T>): Promise<Settled<T>> {
  const { ask, payment, tell, sleep } = order
  const { protocol } = payment
  let last: T | undefined
  for (let attempt = order.attempt; attempt < order.attempt + TRIES; attempt += 1) {
    if (attempt > order.attempt) {
      tell('outcome not known yet: the same payment is sent again')
      await sleep(1000 * (attempt - order.attempt))
    }
    const answer = await ask()
    last = answer ?? last
    const receipt = answer && PROTOCOLS.find(({ name }) => name === protocol)?.readReceipt(answer.reply)
    const cost = costOf(payment, receipt)
    const isRefusedCopy = attempt > 1 && protocol === 'mpp' && answer?.status === 402
    const charged =
      answer === undefined || isRefusedCopy ? 'unknown' : chargedBy(answer, { receipt, cost }, attempt)
    if (answer !== undefined && (isAnswered(answer.status) || charged !== 'unknown')) {
      const amount = charged === 'no' ? toMicros(0n) : cost
      return { answer, charged, amount, transaction: receipt?.transaction, usage: receipt?.usage }
    }
  }
  return { answer: last, charged: 'unknown', amount: payment.amount, transaction: undefined }
}

/** What a payment has cost: a receipt states less than what was signed only where that was a ceiling. */
function costOf({ amount, amountIs }: SignedPayment, receipt: PaymentReceipt | undefined): Micros {
  const stated = receipt?.amount
  return amountIs === 'ceiling' && stated !== undefined && stated < amount ? stated : amount
}

/**
 * What an answer to a payment proves about the charge. An error page of an intermediary proves nothing, and a
 * refused copy says nothing of the original: MPP refuses every copy of an answered payment.
 */
function chargedBy(
  { status, reply, body }: Answer,
  { receipt, cost }: { readonly receipt: PaymentReceipt | undefined; readonly cost: Micros },
  attempt: number,
): Charged {
  if (isEarlier(reply)) return 'no'
  // Work that has used nothing: the seller sends nothing to the network.
  if (cost === 0n) return 'no'
  if (receipt?.transaction !== undefined || receipt?.by === 'voucher') return 'yes'
  if (isAnswered(status)) return 'unknown'
  const said = isJsonObject(body) ? body['charged'] : undefined
  if (said === 'no' || said === 'yes' || said === 'unknown') return said
  return status < 500 && attempt === 1 ? 'no' : 'unknown'
}

/** Whether an earlier payment of the same buyer has bought the answer, and was charged. */
export function isEarlier(reply: Reply): boolean {
  const charged =
    reply.kind === 'tool' ? metaOf(reply, 'ratecard/charged') : reply.headers.get('ratecard-charged')
  return charged === 'earlier'
}
