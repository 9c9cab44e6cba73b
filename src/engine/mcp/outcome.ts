import { ERRORS, Failure, type InvalidParameter } from '../errors.ts'
import type { JsonObject } from '../json.ts'
import { chargedBy } from '../ledger/lifecycle.ts'
import type { Entry, Receipt } from '../ledger/entry.ts'
import type { Outcome } from '../paywall/paywall.ts'
import type { Protocol, Refusal } from '../protocols/protocol.ts'
import { foreseen, unfitParameter } from '../work/fault.ts'
import { REUSED } from '../work/reused.ts'
import type { Answered, Counter, ToolCall } from './tool-call.ts'
import { answered, failed, invalid, problem, type ToolReply } from './result.ts'

/** What a buyer is told of a purchase: the answer, or what went wrong and what was charged. `offer` asks for another payment. */
export function tell(
  counter: Counter,
  call: Pick<ToolCall, 'toolbox'>,
  outcome: Outcome,
  offer: (refusal: Refusal, meta: JsonObject) => ToolReply,
): Answered {
  switch (outcome.kind) {
    case 'delivered':
      return { reply: answered(outcome.answer, receiptMeta(call, outcome, 200)), delivered: outcome.entry }
    case 'owed': {
      const told = foreseen(counter, outcome.fault, 'yes')
      const status = told instanceof Failure ? told.status : 422
      return { reply: thrown(told, 'yes', receiptMeta(call, outcome, status)) }
    }
    case 'refused':
      return { reply: refuse(outcome.refusal, offer) }
    case 'unsettled': {
      const { entry, refusal } = outcome
      return { reply: offer(refusal, protocolOf(call, entry)?.tools.failure(entry, refusal.code) ?? {}) }
    }
    case 'failed':
      return { reply: thrown(foreseen(counter, outcome.fault, 'no'), 'no', {}) }
    case 'reused': {
      const extra = { payment: outcome.entry.id }
      return {
        reply: problem(outcome.code, REUSED[outcome.code], { charged: chargedBy(outcome.entry), extra }),
      }
    }
    case 'pending': {
      const status = `${counter.baseUrl}/payments/${outcome.id}`
      const extra = { payment: outcome.id, status_url: status, retry_after: 2 }
      const detail = 'whether the payment has settled is not known yet'
      return { reply: problem('payment_pending', detail, { charged: 'unknown', extra }) }
    }
    case 'abandoned':
      return { reply: problem('payment_pending', 'the call was given up', { charged: 'no' }) }
  }
}

/** What a handler has thrown, as the caller may see it. */
export function thrown(
  fault: Failure | InvalidParameter,
  charged: 'no' | 'yes',
  meta: JsonObject,
): ToolReply {
  if (fault instanceof Failure) return failed(fault, charged, meta)
  return invalid([{ ...unfitParameter(fault), loc: ['arguments', fault.parameter] }], meta)
}

function refuse(
  { code, detail, retryAfter = 5 }: Refusal,
  offer: (refusal: Refusal, meta: JsonObject) => ToolReply,
): ToolReply {
  const { status, retryable } = ERRORS[code]
  if (status === 402) return offer({ code, detail }, {})
  return problem(code, detail, {
    charged: 'no',
    ...(retryable ? { extra: { retry_after: retryAfter } } : {}),
  })
}

/** Its id is the one under which the payment's state is told. */
const PAYMENT = 'ratecard/payment'

function receiptMeta(
  call: Pick<ToolCall, 'toolbox'>,
  { entry, receipt }: { readonly entry: Entry; readonly receipt: Receipt },
  status: number,
): JsonObject {
  return { [PAYMENT]: entry.id, ...protocolOf(call, entry)?.tools.receipt(entry, receipt, status) }
}

function protocolOf({ toolbox }: Pick<ToolCall, 'toolbox'>, { protocol }: Entry): Protocol | undefined {
  return toolbox.protocols.find(({ name }) => name === protocol)
}
