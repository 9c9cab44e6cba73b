import { Failure, type InvalidParameter } from '../errors.ts'
import { compact, type JsonObject } from '../json.ts'
import type { Entry } from '../ledger/entry.ts'
import type { Protocol, Refusal } from '../protocols/protocol.ts'
import { replyTo, toValidationError, type Paid, type PurchaseResult } from '../purchase/problem.ts'
import type { Answered, Counter, ToolCall } from './tool-call.ts'
import { answered, failed, invalid, problem, type ToolReply } from './result.ts'

/** The answer that was bought, or what went wrong and what was charged. `offer` asks for another payment. */
export function renderResult(
  counter: Counter,
  call: Pick<ToolCall, 'toolbox'>,
  result: PurchaseResult,
  offer: (refusal: Refusal, meta: JsonObject) => ToolReply,
): Answered {
  const reply = replyTo(counter, result)
  switch (reply.kind) {
    case 'answered':
      return { reply: answered(reply.answer, receiptMeta(call, reply, 200)), delivered: reply.entry }
    case 'offer': {
      const { refusal, failed: entry } = reply
      const meta = entry && protocolOf(call, entry)?.tools.failure(entry, refusal.code)
      return { reply: offer(refusal, meta ?? {}) }
    }
    case 'fault': {
      const { fault, charged, paid } = reply
      const status = fault instanceof Failure ? fault.status : 422
      return { reply: thrown(fault, charged, paid === undefined ? {} : receiptMeta(call, paid, status)) }
    }
    case 'problem': {
      const { code, detail, charged, payment, retryAfter } = reply
      const isPending = code === 'payment_pending' && payment !== undefined
      const status = isPending ? `${counter.baseUrl}/payments/${payment}` : undefined
      const extra = compact({ payment, status_url: status, retry_after: retryAfter })
      return { reply: problem(code, detail, { charged, extra }) }
    }
  }
}

/** What a handler has thrown, as the caller may see it. */
export function thrown(
  fault: Failure | InvalidParameter,
  charged: 'no' | 'yes',
  meta: JsonObject,
): ToolReply {
  if (fault instanceof Failure) return failed(fault, charged, meta)
  return invalid([{ ...toValidationError(fault), loc: ['arguments', fault.parameter] }], charged, meta)
}

/** Its id is the one under which the payment's state is told. */
const PAYMENT = 'ratecard/payment'

function receiptMeta(call: Pick<ToolCall, 'toolbox'>, { entry, receipt }: Paid, status: number): JsonObject {
  return { [PAYMENT]: entry.id, ...protocolOf(call, entry)?.tools.receipt(entry, receipt, status) }
}

function protocolOf({ toolbox }: Pick<ToolCall, 'toolbox'>, { protocol }: Entry): Protocol | undefined {
  return toolbox.protocols.find(({ name }) => name === protocol)
}
