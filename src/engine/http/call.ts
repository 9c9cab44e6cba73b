import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { UNPAID_BYTES } from '../catalog/body.ts'
import type { Body } from '../catalog/catalog.ts'
import type { RawParameters } from '../catalog/validator.ts'
import { isProbe, type SaleRequest } from '../base/access-record.ts'
import { ERRORS, Failure, NOT_CHARGED, type InvalidParameter } from '../base/errors.ts'
import type { PaymentRecord, StoredAnswer } from '../ledger/payment-record.ts'
import type { Action, Payment, PaymentProtocol } from '../payment/payment.ts'
import { runExempt, type ExemptDeps, isStranger } from '../purchase/run-exempt.ts'
import { ANONYMOUS, invoke, unreadyFailure } from '../purchase/execution.ts'
import type { ExemptCaller } from '../purchase/exempt-caller.ts'
import { type OpenStream } from '../purchase/request.ts'
import { NO_OFFER, toPublicError, toValidationError, type FaultDeps } from '../purchase/problem.ts'
import { type Paid, type PurchaseResult } from '../purchase/result.ts'
import {
  findPayment,
  preverify,
  purchaseCall,
  quoteCall,
  replyTo,
  type PaidCallDeps,
  type PurchaseProblem,
} from '../purchase/purchase.ts'
import { withMetrics, type RouteCounters } from '../usage/counts.ts'
import { BUSY, type BodyReader, declaredSize, discardBody, type Received } from './body-reader.ts'
import { failed, INERT, invalid, note, ok, problem, type Reply } from './reply.ts'
import { disconnectSignal } from './buyer-connections.ts'
import { bodyTerms, UNPAID, type Reason } from './payment-required.ts'
import type { Revision, ServedRoute } from './revision.ts'
import { findSigner, type FoundSigner, SIGN_IN, NO_PROOF } from '../sign-in/find-signer.ts'
import { signInReply } from './sign-in-required.ts'
import { type ClientLimitDeps, overspent, TOO_MANY_TRIES } from './client-limit.ts'
import { UpstreamForbidden } from './proxy.ts'

export interface CallDeps extends PaidCallDeps, ExemptDeps, ClientLimitDeps, FaultDeps {
  readonly bodies: BodyReader
}

/** One request to one route. */
export interface RouteRequest {
  readonly ctx: Context
  readonly served: ServedRoute
  /** Counters of this route. */
  readonly counters: RouteCounters
  readonly revision: Revision
  readonly parameters: RawParameters
  /** Absolute URL of the concrete path. */
  readonly resource: string
  /** The read body; undefined when the route has none, and before it is read. */
  readonly received?: Received
}

export interface Answered {
  readonly reply: Reply
  /** Set when the reply is a paid answer, whose delivery is tracked. */
  readonly delivered?: PaymentRecord
  /** Resolves when a stream is recorded completely. */
  readonly recorded?: Promise<void>
}

/** Serves a paid route: to a caller who is exempt from payment, or for sale. */
export function servePaid(deps: CallDeps, request: RouteRequest): Answered | Promise<Answered> {
  const { ctx, served } = request
  const exempt = ctx.method === 'HEAD' ? undefined : served.exemptCallerOf?.(ctx.headers)
  return exempt === undefined ? sell(deps, request, UNPAID) : serveExempt(deps, request, exempt)
}

/** 402 without a payment, for the reason given; the purchased answer with one. */
function sell(deps: CallDeps, request: RouteRequest, reason: Reason): Answered | Promise<Answered> {
  const { ctx, revision, counters } = request
  // HEAD shows the offer of GET; a payment in it is ignored.
  const protocols = ctx.method === 'HEAD' ? [] : revision.protocols
  const detection = findPayment(protocols.map((each) => each.detect(ctx.headers)))
  if (detection.kind === 'none') {
    counters.count('unpaid')
    noteSale(request, { paid: false })
    const { body } = request.served.operation
    if (body !== undefined) return offerForBody(deps, request, body, reason)
    return { reply: paymentRequired(request, reason) }
  }
  counters.count('presented')
  noteSale(request, { paid: true })
  const gone = disconnectSignal(ctx.res)
  return withMetrics(deps.now, { counters, gone }, async () => {
    const { body } = request.served.operation
    switch (detection.kind) {
      case 'malformed':
        if (body !== undefined) discardBody(ctx.req, ctx.res)
        return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
      case 'refused': {
        const received = body === undefined ? {} : { received: await bodyOfOffer(deps, request, body) }
        return { reply: paymentRequired({ ...request, ...received }, detection) }
      }
      case 'action': {
        if (body !== undefined) discardBody(ctx.req, ctx.res)
        return { reply: await act(request, detection.action) }
      }
      case 'payment': {
        const { payment } = detection
        if (body !== undefined) return payWithBody(deps, request, payment, gone, body)
        return pay(deps, request, payment, gone)
      }
    }
  })
}

function noteSale(
  { ctx, served }: RouteRequest,
  { paid, wouldFail }: Pick<SaleRequest, 'paid' | 'wouldFail'>,
): void {
  const probe = isProbe(ctx.method, ctx.headers['user-agent'])
  note(ctx, { sale: { operation: served.operation.id, probe, paid, wouldFail } })
}

/**
 * Serves a caller who is exempt from payment. A payment that comes along is used only when the upstream refuses the
 * credential.
 */
async function serveExempt(deps: CallDeps, request: RouteRequest, exempt: ExemptCaller): Promise<Answered> {
  const { ctx, counters } = request
  if (exempt.kind === 'customer') note(ctx, { customer: exempt.name })
  const gone = disconnectSignal(ctx.res)
  const { reply, forSale } = await withMetrics(deps.now, { counters, gone }, () =>
    callExempt(deps, request, exempt),
  )
  if (reply === undefined) return sell(deps, forSale, CREDENTIAL_REFUSED)
  return { reply: { ...reply, headers: { ...reply.headers, ...PRIVATE } } }
}

const PRIVATE = { 'Cache-Control': 'private, no-store' }

const CREDENTIAL_REFUSED: Reason = {
  code: 'payment_required',
  detail:
    'the upstream does not accept the credential of this request; send the request again with a payment for one of these offers',
}

/** The answer for an exempt caller, or the request as it is for sale, its body read. */
type ExemptCall =
  | { readonly reply: Reply; readonly forSale?: undefined }
  | { readonly reply?: undefined; readonly forSale: RouteRequest }

async function callExempt(deps: CallDeps, request: RouteRequest, exempt: ExemptCaller): Promise<ExemptCall> {
  const { ctx, counters } = request
  if (exempt.kind === 'customer') counters.count('keyed')
  if (isStranger(deps, exempt)) {
    const spent = await overspent(deps, ctx.req, TOO_MANY_TRIES)
    if (spent !== undefined) {
      discardBody(ctx.req, ctx.res)
      return { reply: failed(spent) }
    }
  }
  const read = await readCall(deps, request)
  if (read.kind === 'reply') return read
  try {
    const done = await runExempt(deps, exempt, read.call)
    if (done.kind === 'refused') return { forSale: read.request }
    return { reply: unpaidAnswer(done.answer) }
  } catch (fault) {
    if (fault instanceof UpstreamForbidden) return { reply: forbidden(fault) }
    return { reply: faultReply(request, toPublicError(deps, fault, 'no')) }
  } finally {
    if (exempt.kind === 'caller' && !isStranger(deps, exempt)) counters.count('keyed')
  }
}

/** The answer of the upstream as it is. */
function forbidden({ status, code, detail, answer: { type, headers, bytes } }: UpstreamForbidden): Reply {
  const given = type === '' ? headers : { 'Content-Type': type, ...headers }
  return { status, headers: { ...given, ...INERT }, body: Buffer.from(bytes), code, detail }
}

/**
 * Serves a GET for a route of another method: its offer, and payloads that buy nothing. Clients of channels ask for a
 * refund by GET, and look for the offer that it belongs to in the same way.
 */
export async function serveAction(request: RouteRequest): Promise<Answered> {
  const { ctx, revision, served } = request
  const detection = findPayment(revision.protocols.map((each) => each.detect(ctx.headers)))
  switch (detection.kind) {
    case 'none':
      return { reply: paymentRequired(request, UNPAID) }
    case 'refused':
      return { reply: paymentRequired(request, detection) }
    case 'action':
      return { reply: await act(request, detection.action) }
    case 'malformed':
      return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
    case 'payment': {
      const detail = `this is sold by ${served.operation.method}; nothing was charged`
      return { reply: problem('method_not_allowed', detail, { charged: 'no' }) }
    }
  }
}

/** Carries out a payload that buys nothing. */
async function act(request: RouteRequest, action: Action): Promise<Reply> {
  const done = await action.run()
  if (done.kind === 'done')
    return ok({ kind: 'json', value: done.result }, { 'Cache-Control': 'no-store', ...done.headers })
  const { code, detail } = done.refusal
  if (ERRORS[code].status === 402) return paymentRequired(request, done.refusal)
  return problem(code, detail, { charged: 'no' })
}

/** The body for a new offer after a refused payment: all of it when the price depends on it. */
async function bodyOfOffer(deps: CallDeps, request: RouteRequest, body: Body): Promise<Received> {
  if (request.received !== undefined) return request.received
  if (isPricedByCall(request)) return readUnpaid(deps, request, body)
  discardBody(request.ctx.req, request.ctx.res)
  return { kind: 'unread' }
}

function isPricedByCall({ served: { operation } }: RouteRequest): boolean {
  return typeof operation.price === 'object'
}

/** Reads the body of an unpaid request up to the limit; a fixed price is offered without it when memory is short. */
async function readUnpaid({ bodies }: CallDeps, request: RouteRequest, body: Body): Promise<Received> {
  const { req, res } = request.ctx
  const received = await bodies.receive(req, res, body, Math.min(body.maxSize, UNPAID_BYTES))
  const isBusy = received.kind === 'fault' && received.refusal.code === BUSY.code
  return isBusy && !isPricedByCall(request) ? { kind: 'unread' } : received
}

/** The offer for a body, as far as it is read without a payment. */
async function offerForBody(
  deps: CallDeps,
  request: RouteRequest,
  body: Body,
  reason: Reason,
): Promise<Answered> {
  const received = request.received ?? (await readUnpaid(deps, request, body))
  return { reply: paymentRequired({ ...request, received }, reason) }
}

/** Above this size, or without a declared size, a body is read only for a payment that would be accepted. */
const CHEAP_BYTES = 64_000

async function payWithBody(
  deps: CallDeps,
  request: RouteRequest,
  payment: Payment,
  gone: AbortSignal,
  body: Body,
): Promise<Answered> {
  // The upstream was asked with it before.
  if (request.received !== undefined) return pay(deps, request, payment, gone)
  const { req, res } = request.ctx
  const isCheap = req.headers['transfer-encoding'] === undefined && declaredSize(req.headers) <= CHEAP_BYTES
  const refusal = isCheap ? undefined : await preverify(deps.purchases, payment)
  if (refusal !== undefined) {
    const received = await bodyOfOffer(deps, request, body)
    return renderResult(deps, { ...request, received }, payment, { kind: 'refused', refusal })
  }
  const received = await deps.bodies.receive(req, res, body, body.maxSize)
  if (received.kind === 'fault') return { reply: refusedBody(received) }
  if (received.kind === 'unread') throw new Error('a body is read as far as its route allows')
  const parameters = { ...request.parameters, body: received.value }
  return pay(deps, { ...request, parameters, received }, payment, gone)
}

function refusedBody({ refusal }: Extract<Received, { readonly kind: 'fault' }>): Reply {
  const { code, detail, retryAfter } = refusal
  const headers = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }
  return problem(code, detail, { charged: 'no', headers })
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
  const quote = quoteCall(served.operation, validated.args)
  note(request.ctx, { price: quote.amount })
  const result = await purchaseCall(deps, {
    ...(received?.kind === 'body' ? bodyTerms(request, received) : {}),
    payment,
    endpoint: served.route,
    resource,
    served,
    operations: revision.operations,
    revision: revision.catalog.revision,
    args: validated.args,
    quote,
    ignored: validated.ignored,
    gone,
  })
  return renderResult(deps, request, payment, result)
}

/** The 402 of a request, with the price and the result of its preflight. */
function paymentRequired(request: RouteRequest, reason: Reason): Reply {
  const { served, revision } = request
  if (served.challenges.size === 0) return failed(NO_OFFER)
  if (served.paymentRequired === undefined) {
    const { code, detail, headers = {} } = reason
    return problem(code, detail, { charged: 'no', headers })
  }
  const preflight = revision.preflights.of(request)
  const { wouldFailReason: wouldFail } = preflight
  if (reason === UNPAID && wouldFail !== undefined) noteSale(request, { paid: false, wouldFail })
  if (typeof served.operation.price === 'object' && preflight.quote !== undefined)
    note(request.ctx, { price: preflight.quote.amount })
  return served.paymentRequired(preflight, reason)
}

/** The purchased answer, or the error and what was charged. */
function renderResult(
  deps: FaultDeps,
  request: RouteRequest,
  payment: Payment,
  result: PurchaseResult,
): Answered {
  const reply = replyTo(deps, result)
  switch (reply.kind) {
    case 'answered': {
      // The answer of an earlier payment comes with that payment's receipt.
      const isOwn = reply.record.authorizationHash === payment.authorizationHash
      const charged = isOwn ? {} : { 'Ratecard-Charged': 'earlier' }
      const headers = {
        'Cache-Control': 'private, no-cache',
        ...receiptHeaders(request, payment, reply, reply.answer.status ?? 200),
        ...charged,
      }
      const vary = 'PAYMENT-SIGNATURE, X-PAYMENT, Authorization'
      const { answer, record } = reply
      const recorded = answer.kind === 'stream' ? { recorded: answer.recorded } : {}
      return { reply: { ...ok(answer, headers), vary }, delivered: record, ...recorded }
    }
    case 'streaming': {
      const { record, answer } = reply
      // What it costs is known at its end.
      const headers = { 'Cache-Control': 'private, no-cache', 'Ratecard-Payment': record.id }
      return { reply: ok(answer, headers), delivered: record, recorded: answer.recorded }
    }
    case 'offer': {
      const { refusal, failed: record } = reply
      const headers = record && protocolOf(request, payment, record)?.failureHeaders(record, refusal.code)
      return { reply: paymentRequired(request, { ...refusal, headers }) }
    }
    case 'fault': {
      const fault = faultReply(request, reply.fault, reply.charge)
      if (reply.paid === undefined) return { reply: fault }
      const headers = { ...fault.headers, ...receiptHeaders(request, payment, reply.paid, fault.status) }
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
  payment: Payment,
  { record, receipt }: Paid,
  status: number,
): Readonly<Record<string, string>> {
  const headers = protocolOf(request, payment, record)?.receiptHeaders(record, receipt, status)
  return { 'Ratecard-Payment': record.id, ...headers }
}

/** The protocol of a record: in the form of the payment that came, where it is of the same protocol. */
function protocolOf(
  { revision }: RouteRequest,
  payment: Payment,
  { protocol }: PaymentRecord,
): PaymentProtocol | undefined {
  return [payment.protocol, ...revision.protocols].find(({ name }) => name === protocol)
}

/** A handler's error as the caller may see it. */
function faultReply(
  { served: { route } }: RouteRequest,
  fault: Failure | InvalidParameter,
  charge = NOT_CHARGED,
): Reply {
  if (fault instanceof Failure) return failed(fault, charge)
  const place = route.parameters.find(({ name }) => name === fault.parameter)?.in
  const isBody = place === undefined && fault.parameter === 'body' && route.operation.body !== undefined
  const loc = isBody ? ['body'] : [place ?? 'query', fault.parameter]
  const { type, msg, ctx } = toValidationError(fault)
  return invalid([{ type, loc, msg, ctx }], charge)
}

/** Serves samples and free routes, and ignores payment headers. */
export async function serveFree(deps: CallDeps, request: RouteRequest): Promise<Answered> {
  const { ctx, counters } = request
  const gone = disconnectSignal(ctx.res)
  return withMetrics(deps.now, { counters, gone }, async () => ({ reply: await freeReply(deps, request) }))
}

async function freeReply(deps: CallDeps, request: RouteRequest): Promise<Reply> {
  const { served, ctx } = request
  const read = await readCall(deps, request)
  if (read.kind === 'reply') return read.reply
  const { operation, route } = served
  if (operation.sources.length > 0 || operation.upstream !== undefined) {
    const spent = await overspent(deps, ctx.req, TOO_MANY_CALLS)
    if (spent !== undefined) return failed(spent)
  }
  try {
    const timeLeft = operation.timeout
    if (route.requires === undefined)
      return unpaidAnswer(await invoke(deps, { ...read.call, caller: ANONYMOUS, timeLeft }))
    const found = await signerOf(deps, request)
    if (found.kind !== 'signer') return signInReply(deps, request, found)
    const caller = { payment: undefined, signer: found.address }
    const reply = unpaidAnswer(await invoke(deps, { ...read.call, caller, timeLeft }))
    return { ...reply, headers: { ...reply.headers, ...PRIVATE } }
  } catch (fault) {
    return faultReply(request, toPublicError(deps, fault, 'no'))
  }
}

const TOO_MANY_CALLS = 'this address has asked for free answers from outside sources too often'

function signerOf(deps: CallDeps, { ctx, resource }: RouteRequest): Promise<FoundSigner> | FoundSigner {
  const { purchases, now, random } = deps
  const sent = ctx.headers[SIGN_IN]
  if (sent === undefined) return NO_PROOF
  return findSigner({ ledger: purchases.ledger, now, random }, sent, resource)
}

type ReadCall =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | {
      readonly kind: 'call'
      readonly call: Parameters<typeof runExempt>[2]
      /** With the body that was read. */
      readonly request: RouteRequest
    }

/** The call of a request that is not paid for, or why there is none. */
async function readCall(deps: CallDeps, request: RouteRequest): Promise<ReadCall> {
  const { served, revision, ctx } = request
  const refuse = (reply: Reply): ReadCall => ({ kind: 'reply', reply })
  const unready = unreadyFailure(served.readiness)
  if (unready !== undefined) return refuse(failed(unready))
  const { body } = served.operation
  let whole = request
  if (body !== undefined) {
    const received = await deps.bodies.receive(ctx.req, ctx.res, body, body.maxSize)
    if (received.kind === 'fault') return refuse(refusedBody(received))
    const given = received.kind === 'body' ? { body: received.value } : {}
    whole = { ...request, received, parameters: { ...request.parameters, ...given } }
  }
  const validated = served.validate(whole.parameters)
  if (validated.kind === 'invalid') return refuse(invalid(validated.errors))
  const { args, ignored } = validated
  const { operations } = revision
  return { kind: 'call', call: { endpoint: served.route, served, operations, args, ignored }, request: whole }
}

function unpaidAnswer(stored: StoredAnswer | OpenStream): Reply {
  const answer = stored.kind === 'stream' ? { ...stored, body: bodyOf(stored) } : stored
  return ok(answer, { 'Cache-Control': 'no-cache' })
}

function bodyOf({ chunks, close }: OpenStream): Readable {
  return Readable.from({ [Symbol.asyncIterator]: () => chunks }, { objectMode: false }).once('close', close)
}
