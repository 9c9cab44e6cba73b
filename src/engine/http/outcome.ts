import { ERRORS } from '../errors.ts'
import type { Entry, Receipt } from '../ledger/entry.ts'
import { problemOf, type FaultDeps } from '../purchase/problem.ts'
import type { PaidCallResult } from '../purchase/purchase.ts'
import { challenge } from './challenge.ts'
import { faultReply } from './fault.ts'
import { problem, sold, type Reply } from './reply.ts'
import type { Answered, RouteRequest } from './request.ts'

/** The answer that was bought, or what went wrong and what was charged. */
export function renderResult(deps: FaultDeps, request: RouteRequest, result: PaidCallResult): Answered {
  switch (result.kind) {
    case 'answered': {
      const headers = { ...PAID, ...receiptHeaders(request, result, 200) }
      const reply = { ...sold(result.answer, headers), vary: 'PAYMENT-SIGNATURE, Authorization' }
      return { reply, delivered: result.entry }
    }
    case 'paidUnfulfilled': {
      const reply = faultReply(deps, request.served, result.fault, 'yes')
      const headers = { ...reply.headers, ...receiptHeaders(request, result, reply.status) }
      return { reply: { ...reply, headers } }
    }
    case 'settlementFailed': {
      const { code, detail } = result.refusal
      const protocol = protocolOf(request, result.entry)
      return { reply: challenge(request, code, detail, protocol?.failureHeaders(result.entry, code)) }
    }
    case 'failed':
      return { reply: faultReply(deps, request.served, result.fault, 'no') }
    case 'refused': {
      const { code, detail } = result.refusal
      return { reply: ERRORS[code].status === 402 ? challenge(request, code, detail) : refuse(result) }
    }
    case 'replayRejected':
    case 'pending':
    case 'disconnected':
    case 'unavailable':
      return { reply: refuse(result) }
  }
}

function refuse(result: Parameters<typeof problemOf>[0]): Reply {
  const { code, detail, charged, payment, retryAfter } = problemOf(result)
  const headers = {
    ...(retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }),
    ...(result.kind === 'pending' ? { Location: `/payments/${result.id}` } : {}),
  }
  return problem(code, detail, { charged, headers, extra: payment === undefined ? {} : { payment } })
}

function receiptHeaders(
  request: RouteRequest,
  { entry, receipt }: { readonly entry: Entry; readonly receipt: Receipt },
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

const PAID = { 'Cache-Control': 'private, no-cache' }
