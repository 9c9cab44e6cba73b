import type { Context } from 'koa'
import type { Body } from '../catalog/catalog.ts'
import type { Rate } from '../cache/cache.ts'
import type { RawParameters } from '../catalog/validator.ts'
import { Failure, type InvalidParameter } from '../errors.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { Payment, Protocol } from '../protocols/protocol.ts'
import { ANONYMOUS, invoke, unreadyFailure, type ExecutionDeps } from '../purchase/execution.ts'
import {
  NO_OFFER,
  replyTo,
  toPublicError,
  toValidationError,
  type FaultDeps,
  type Paid,
  type PurchaseProblem,
  type PurchaseResult,
} from '../purchase/request.ts'
import { findPayment, preverify, purchaseCall, type PaidCallDeps } from '../purchase/purchase.ts'
import { withMetrics, type RouteCounters } from '../usage/usage.ts'
import { declaredSize, discardBody, receiveBody, UNPAID_BYTES, type Received } from './body.ts'
import { disconnectSignal, failed, invalid, ok, problem, type Reply } from './reply.ts'
import { bodyTerms, UNPAID, type Reason } from './payment-required.ts'
import type { Revision, ServedRoute } from './revision.ts'
import { clientOf } from './server.ts'

export interface CallDeps extends PaidCallDeps, FaultDeps {
  readonly trustProxy: boolean
}

/** One request to one route. */
export interface RouteRequest {
  readonly ctx: Context
  readonly served: ServedRoute
  /** Of this route. */
  readonly counters: RouteCounters
  readonly revision: Revision
  readonly parameters: RawParameters
  /** Absolute URL of the concrete path. */
  readonly resource: string
  /** What came of its body; undefined where the route takes none, and before it is read. */
  readonly received?: Received
}

export interface Answered {
  readonly reply: Reply
  /** Set when the reply is the paid answer: its arrival is recorded. */
  readonly delivered?: PaymentRecord
}

/** A paid route: without a payment 402, with one the answer it buys. */
export function servePaid(deps: CallDeps, request: RouteRequest): Answered | Promise<Answered> {
  const { ctx, revision, counters } = request
  // HEAD shows what GET would be offered; a payment sent with it is left alone.
  const protocols = ctx.method === 'HEAD' ? [] : revision.protocols
  const detection = findPayment(protocols.map((each) => each.detect(ctx.headers)))
  if (detection.kind === 'none') {
    counters.count('unpaid')
    const { body } = request.served.operation
    if (body !== undefined) return offerForBody(request, body)
    return { reply: paymentRequired(request, UNPAID) }
  }
  counters.count('presented')
  const gone = disconnectSignal(ctx.res)
  return withMetrics(deps.now, { counters, gone }, async () => {
    if (detection.kind !== 'payment' && request.served.operation.body !== undefined)
      discardBody(ctx.req, ctx.res)
    switch (detection.kind) {
      case 'malformed':
        return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
      case 'refused':
        return { reply: paymentRequired(request, detection) }
      case 'payment': {
        const { payment } = detection
        const { body } = request.served.operation
        if (body !== undefined) return payWithBody(deps, request, payment, gone, body)
        return pay(deps, request, payment, gone)
      }
    }
  })
}

/** What a request would bring is known from its body, as far as that is read without a payment. */
async function offerForBody(request: RouteRequest, body: Body): Promise<Answered> {
  const { req, res } = request.ctx
  const received = await receiveBody(req, res, body, Math.min(body.maxSize, UNPAID_BYTES))
  return { reply: paymentRequired({ ...request, received }, UNPAID) }
}

/** Above this size, and where a size is not declared, a body is read for those alone whose payment would be taken. */
const CHEAP_BYTES = 64_000

async function payWithBody(
  deps: CallDeps,
  request: RouteRequest,
  payment: Payment,
  gone: AbortSignal,
  body: Body,
): Promise<Answered> {
  const { req, res } = request.ctx
  const isCheap = req.headers['transfer-encoding'] === undefined && declaredSize(req.headers) <= CHEAP_BYTES
  const refusal = isCheap ? undefined : await preverify(deps.purchases, payment)
  if (refusal !== undefined) {
    discardBody(req, res)
    return renderResult(deps, { ...request, received: { kind: 'unread' } }, payment, {
      kind: 'refused',
      refusal,
    })
  }
  const received = await receiveBody(req, res, body, body.maxSize)
  if (received.kind === 'fault') return { reply: refusedBody(received) }
  if (received.kind === 'unread') throw new Error('a body is read as far as its route allows')
  const parameters = { ...request.parameters, body: received.value }
  return pay(deps, { ...request, parameters, received }, payment, gone)
}

function refusedBody({ refusal }: Extract<Received, { readonly kind: 'fault' }>): Reply {
  return problem(refusal.code, refusal.detail, { charged: 'no' })
}

async function pay(
  deps: CallDeps,
  request: RouteRequest,
  payment: Payment,
  gone: AbortSignal,
): Promise<Answered> {
  const { served, revision, resource, received } = request
  const validated = served.validate(request.parameters)
  if (validated.kind === 'invalid') return { reply: invalid(validated.errors) }
  const result = await purchaseCall(deps, {
    ...(received?.kind === 'body' ? bodyTerms(request, received) : {}),
    payment,
    endpoint: served.route,
    resource,
    served,
    operations: revision.operations,
    revision: revision.catalog.revision,
    args: validated.args,
    ignored: validated.ignored,
    gone,
  })
  return renderResult(deps, request, payment, result)
}

/** The 402 of a request: what it costs, and what would become of it. */
function paymentRequired(request: RouteRequest, reason: Reason): Reply {
  const { served, revision } = request
  if (served.challenges.size === 0) return failed(NO_OFFER, 'no')
  if (served.paymentRequired === undefined) {
    const { code, detail, headers = {} } = reason
    return problem(code, detail, { charged: 'no', headers })
  }
  return served.paymentRequired(revision.preflights.of(request), reason)
}

/** The answer that was bought, or what went wrong and what was charged. */
function renderResult(
  deps: FaultDeps,
  request: RouteRequest,
  payment: Payment,
  result: PurchaseResult,
): Answered {
  const reply = replyTo(deps, result)
  switch (reply.kind) {
    case 'answered': {
      // An answer that an earlier payment has bought comes with the receipt of that one.
      const charged = reply.entry.key === payment.key ? {} : { 'Ratecard-Charged': 'earlier' }
      const headers = {
        'Cache-Control': 'private, no-cache',
        ...receiptHeaders(request, reply, 200),
        ...charged,
      }
      const vary = 'PAYMENT-SIGNATURE, Authorization'
      return { reply: { ...ok(reply.answer, headers), vary }, delivered: reply.entry }
    }
    case 'offer': {
      const { refusal, failed: entry } = reply
      const headers = entry && protocolOf(request, entry)?.failureHeaders(entry, refusal.code)
      return { reply: paymentRequired(request, { ...refusal, headers }) }
    }
    case 'fault': {
      const fault = faultReply(request, reply.fault, reply.charged)
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
  const headers = protocolOf(request, entry)?.receiptHeaders(entry, receipt, status)
  return { 'Ratecard-Payment': entry.id, ...headers }
}

function protocolOf({ revision }: RouteRequest, { protocol }: PaymentRecord): Protocol | undefined {
  return revision.protocols.find(({ name }) => name === protocol)
}

/** What a handler has thrown, as the caller may see it. */
function faultReply(
  { served: { route } }: RouteRequest,
  fault: Failure | InvalidParameter,
  charged: 'no' | 'yes',
): Reply {
  if (fault instanceof Failure) return failed(fault, charged)
  const place = route.parameters.find(({ name }) => name === fault.parameter)?.in
  const isBody = place === undefined && fault.parameter === 'body' && route.operation.body !== undefined
  const loc = isBody ? ['body'] : [place ?? 'query', fault.parameter]
  const { type, msg, ctx } = toValidationError(fault)
  return invalid([{ type, loc, msg, ctx }], charged)
}

/** Samples and free routes: payment headers are not even looked at. */
export async function serveFree(deps: CallDeps, request: RouteRequest): Promise<Answered> {
  const { ctx, counters } = request
  const gone = disconnectSignal(ctx.res)
  return withMetrics(deps.now, { counters, gone }, async () => ({ reply: await freeReply(deps, request) }))
}

async function freeReply(deps: CallDeps, request: RouteRequest): Promise<Reply> {
  const { served, revision } = request
  const unready = unreadyFailure(served.readiness)
  if (unready !== undefined) return failed(unready, 'no')
  const { body } = served.operation
  let { parameters } = request
  if (body !== undefined) {
    const received = await receiveBody(request.ctx.req, request.ctx.res, body, body.maxSize)
    if (received.kind === 'fault') return refusedBody(received)
    if (received.kind === 'body') parameters = { ...parameters, body: received.value }
  }
  const validated = served.validate(parameters)
  if (validated.kind === 'invalid') return invalid(validated.errors)
  const spent = await overspent(deps, request)
  if (spent !== undefined) return failed(spent, 'no')
  try {
    const stored = await invoke(deps, {
      endpoint: served.route,
      served,
      operations: revision.operations,
      args: validated.args,
      ignored: validated.ignored,
      caller: ANONYMOUS,
      timeLeft: served.operation.timeout,
    })
    return ok(stored, { 'Cache-Control': 'no-cache' })
  } catch (fault) {
    return faultReply(request, toPublicError(deps, fault, 'no'), 'no')
  }
}

/** A minute of a reader’s clicks, and more than an index asks for that looks at every sample once. */
const FREE: Rate = { burst: 60, interval: 1_000 }

/** What is free and asks outside sources is given to nobody without end: sources would shut us out for all. */
async function overspent(
  { cache, trustProxy }: Pick<ExecutionDeps, 'cache'> & Pick<CallDeps, 'trustProxy'>,
  { ctx, served: { operation } }: RouteRequest,
): Promise<Failure | undefined> {
  if (operation.sources.length === 0 && operation.upstream === undefined) return undefined
  const client = clientOf(ctx.req, trustProxy)
  const wait = client === undefined ? 0 : await cache.spend(client, FREE)
  if (wait === 0) return undefined
  const detail = 'this address has asked for free answers from outside sources too often'
  return new Failure('too_many_requests', detail, { retryAfter: wait / 1_000 })
}
