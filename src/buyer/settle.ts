import { type Charged } from '../engine/base/errors.ts'
import { isJsonObject } from '../engine/base/json.ts'
import type { BuyerRuntime } from './buyer-runtime.ts'
import { metaOf, type ProtocolName, type Reply } from './protocols/paying-protocol.ts'
import { PROTOCOLS } from './protocols/all.ts'
import { type Answer, isAnswered } from './request.ts'

/** How often the same payment is sent while the outcome is unknown: it is charged once at most. */
const TRIES = 5

interface SettleRequest<T extends Answer> {
  /** Requests with the payment; undefined when no answer arrived. */
  readonly ask: () => Promise<T | undefined>
  readonly protocol: ProtocolName
  /** 1 for a payment that was never sent before. */
  readonly attempt: number
  readonly tell: (line: string) => void
  readonly sleep: BuyerRuntime['sleep']
}

/** What became of a payment. */
export interface Settled<T extends Answer> {
  /** The last one. */
  readonly answer: T | undefined
  readonly charged: Charged
  readonly transaction: string | undefined
}

/** Sends a payment until its outcome is known, a few times at most. */
export async function settle<T extends Answer>(order: SettleRequest<T>): Promise<Settled<T>> {
  const { ask, protocol, tell, sleep } = order
  let last: T | undefined
  for (let attempt = order.attempt; attempt < order.attempt + TRIES; attempt += 1) {
    if (attempt > order.attempt) {
      tell('outcome not known yet: the same payment is sent again')
      await sleep(1000 * (attempt - order.attempt))
    }
    const answer = await ask()
    last = answer ?? last
    const transaction = answer && PROTOCOLS.find(({ name }) => name === protocol)?.readReceipt(answer.reply)
    const isRefusedCopy = attempt > 1 && protocol === 'mpp' && answer?.status === 402
    const charged =
      answer === undefined || isRefusedCopy ? 'unknown' : chargedBy(answer, transaction, attempt)
    if (answer !== undefined && (isAnswered(answer.status) || charged !== 'unknown'))
      return { answer, charged, transaction }
  }
  return { answer: last, charged: 'unknown', transaction: undefined }
}

/**
 * What an answer to a payment proves about the charge. An error page of an intermediary proves nothing, and a
 * refused copy says nothing of the original: MPP refuses every copy of an answered payment.
 */
function chargedBy(
  { status, reply, body }: Answer,
  transaction: string | undefined,
  attempt: number,
): Charged {
  if (isEarlier(reply)) return 'no'
  if (transaction !== undefined) return 'yes'
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
