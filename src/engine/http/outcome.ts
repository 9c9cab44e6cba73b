import { ERRORS } from '../errors.ts'
import { chargedBy } from '../ledger/lifecycle.ts'
import type { Outcome } from '../paywall/paywall.ts'
import type { Refusal } from '../protocols/protocol.ts'
import { challenge } from './challenge.ts'
import type { FaultSettings } from '../work/fault.ts'
import { REUSED } from '../work/reused.ts'
import { faultReply } from './fault.ts'
import { problem, sold, type Reply } from './reply.ts'
import type { Answered, RouteRequest } from './request.ts'

/** What a buyer is told of a purchase: the answer, or what went wrong and what was charged. */
export function tell(counter: FaultSettings, request: RouteRequest, outcome: Outcome): Answered {
  switch (outcome.kind) {
    case 'delivered': {
      const headers = { ...PAID, ...receiptHeaders(request, outcome, 200) }
      const reply = { ...sold(outcome.answer, headers), vary: 'PAYMENT-SIGNATURE, Authorization' }
      return { reply, delivered: outcome.entry }
    }
    case 'owed': {
      const reply = faultReply(counter, request.served, outcome.fault, 'yes')
      const headers = { ...reply.headers, ...receiptHeaders(request, outcome, reply.status) }
      return { reply: { ...reply, headers } }
    }
    case 'refused':
      return { reply: refuse(request, outcome.refusal) }
    case 'unsettled': {
      const { code, detail } = outcome.refusal
      const protocol = request.revision.protocols.find(({ name }) => name === outcome.entry.protocol)
      return { reply: challenge(request, code, detail, protocol?.failureHeaders(outcome.entry, code)) }
    }
    case 'failed':
      return { reply: faultReply(counter, request.served, outcome.fault, 'no') }
    case 'reused': {
      const detail = REUSED[outcome.code]
      const extra = { payment: outcome.entry.id }
      return { reply: problem(outcome.code, detail, { charged: chargedBy(outcome.entry), extra }) }
    }
    case 'pending': {
      const headers = { 'Retry-After': '2', Location: `/payments/${outcome.id}` }
      const detail = 'whether the payment has settled is not known yet'
      return {
        reply: problem('payment_pending', detail, {
          charged: 'unknown',
          headers,
          extra: { payment: outcome.id },
        }),
      }
    }
    case 'abandoned':
      return { reply: problem('payment_pending', 'the request was given up', { charged: 'no' }) }
  }
}

function receiptHeaders(
  { revision }: RouteRequest,
  { entry, receipt }: Pick<Extract<Outcome, { kind: 'owed' }>, 'entry' | 'receipt'>,
  status: number,
): Readonly<Record<string, string>> {
  const protocol = revision.protocols.find(({ name }) => name === entry.protocol)
  return { 'Ratecard-Payment': entry.id, ...protocol?.receiptHeaders(entry, receipt, status) }
}

const PAID = { 'Cache-Control': 'private, no-cache' }

function refuse(request: RouteRequest, { code, detail, retryAfter = 5 }: Refusal): Reply {
  if (ERRORS[code].status === 402) return challenge(request, code, detail)
  return problem(code, detail, {
    charged: 'no',
    headers: ERRORS[code].retryable ? { 'Retry-After': String(retryAfter) } : {},
  })
}
