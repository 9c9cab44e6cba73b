import { ERRORS, Failure, type InvalidParameter } from '../errors.ts'
import { compact, type JsonObject } from '../json.ts'
import type { Entry, Receipt } from '../ledger/entry.ts'
import type { Protocol, Refusal } from '../protocols/protocol.ts'
import { problemOf, toPublicError, toValidationError } from '../purchase/problem.ts'
import type { PaidCallResult } from '../purchase/purchase.ts'
import type { Answered, Counter, ToolCall } from './tool-call.ts'
import { answered, failed, invalid, problem, type ToolReply } from './result.ts'

/** The answer that was bought, or what went wrong and what was charged. `offer` asks for another payment. */
export function renderResult(
  counter: Counter,
  call: Pick<ToolCall, 'toolbox'>,
  result: PaidCallResult,
  offer: (refusal: Refusal, meta: JsonObject) => ToolReply,
): Answered {
  switch (result.kind) {
    case 'answered':
      return { reply: answered(result.answer, receiptMeta(call, result, 200)), delivered: result.entry }
    case 'paidUnfulfilled': {
      const told = toPublicError(counter, result.fault, 'yes')
      const status = told instanceof Failure ? told.status : 422
      return { reply: thrown(told, 'yes', receiptMeta(call, result, status)) }
    }
    case 'settlementFailed': {
      const { entry, refusal } = result
      return { reply: offer(refusal, protocolOf(call, entry)?.tools.failure(entry, refusal.code) ?? {}) }
    }
    case 'failed':
      return { reply: thrown(toPublicError(counter, result.fault, 'no'), 'no', {}) }
    case 'refused': {
      const { code, detail } = result.refusal
      return { reply: ERRORS[code].status === 402 ? offer({ code, detail }, {}) : refuse(counter, result) }
    }
    case 'replayRejected':
    case 'pending':
    case 'disconnected':
    case 'unavailable':
      return { reply: refuse(counter, result) }
  }
}

function refuse({ baseUrl }: Counter, result: Parameters<typeof problemOf>[0]): ToolReply {
  const { code, detail, charged, payment, retryAfter } = problemOf(result)
  const status = result.kind === 'pending' ? `${baseUrl}/payments/${result.id}` : undefined
  return problem(code, detail, {
    charged,
    extra: compact({ payment, status_url: status, retry_after: retryAfter }),
  })
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
