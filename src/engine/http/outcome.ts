import type { Entry } from '../ledger/entry.ts'
import {
  replyTo,
  type FaultDeps,
  type Paid,
  type PurchaseProblem,
  type PurchaseResult,
} from '../purchase/problem.ts'
import { challenge } from './challenge.ts'
import { faultReply } from './fault.ts'
import { problem, sold, type Reply } from './reply.ts'
import type { Answered, RouteRequest } from './request.ts'

/** The answer that was bought, or what went wrong and what was charged. */
export function renderResult(deps: FaultDeps, request: RouteRequest, result: PurchaseResult): Answered {
  const reply = replyTo(deps, result)
  switch (reply.kind) {
    case 'answered': {
      const headers = { 'Cache-Control': 'private, no-cache', ...receiptHeaders(request, reply, 200) }
      const vary = 'PAYMENT-SIGNATURE, Authorization'
      return { reply: { ...sold(reply.answer, headers), vary }, delivered: reply.entry }
    }
    case 'offer': {
      const { refusal, failed } = reply
      const protocol = failed && protocolOf(request, failed)
      const headers = failed && protocol?.failureHeaders(failed, refusal.code)
      return { reply: challenge(request, refusal.code, refusal.detail, headers) }
    }
    case 'fault': {
      const fault = faultReply(request.served, reply.fault, reply.charged)
      if (reply.paid === undefined) return { reply: fault }
      const headers = { ...fault.headers, ...receiptHeaders(request, reply.paid, fault.status) }
      return { reply: { ...fault, headers } }
    }
    case 'problem':
      return { reply: problemReply(reply) }
  }
}

function problemReply({ code, detail, charged, payment, retryAfter }: PurchaseProblem): Reply {
  const headers = {
    ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
    ...(code === 'payment_pending' && payment !== undefined ? { Location: `/payments/${payment}` } : {}),
  }
  return problem(code, detail, { charged, headers, extra: payment === undefined ? {} : { payment } })
}

function receiptHeaders(
  request: RouteRequest,
  { entry, receipt }: Paid,
  status: number,
): Readonly<Record<string, string>> {
  return {
    'Ratecard-Payment': entry.id,
    ...protocolOf(request, entry)?.receiptHeaders(entry, receipt, status),
  }
}

function protocolOf({ revision }: RouteRequest, { protocol }: Entry) {
  return revision.protocols.find(({ name }) => name === protocol)
}
