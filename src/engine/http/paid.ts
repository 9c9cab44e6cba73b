import type { IncomingHttpHeaders } from 'node:http'
import { ERRORS, type ValidationError } from '../errors.ts'
import { examplePath, type Route } from '../catalog/catalog.ts'
import type { Arguments, PaymentFacts } from '../handler.ts'
import { compact, type JsonObject } from '../json.ts'
import { chargedBy } from '../ledger/charged.ts'
import type { Entry, StoredAnswer } from '../ledger/entry.ts'
import { LedgerError } from '../ledger/ledger.ts'
import type { Job, Outcome, Paywall } from '../paywall/paywall.ts'
import { purchase } from '../paywall/purchase.ts'
import type { Detection, Payment, Refusal } from '../protocols/protocol.ts'
import type { Tally } from '../tally/tally.ts'
import { envelop } from './envelope.ts'
import { faultReply, type FaultSettings } from './fault.ts'
import { digestArguments, execute, rehearse, type Workshop } from './execute.ts'
import type { RawParameters, Validated } from './parameters.ts'
import { failed, invalid, JSON_TYPE, problem, type Reply } from './reply.ts'
import { UNREADY, unreadyFailure, type Readiness } from './readiness.ts'
import type { Revision, ServedRoute } from './revision.ts'
import { timed } from './timed.ts'
import type { WouldFail } from './unpaid.ts'

/** One request to one route, free of the web framework. */
export interface RouteRequest {
  readonly served: ServedRoute
  /** Of this route. */
  readonly tally: Tally
  readonly revision: Revision
  readonly headers: IncomingHttpHeaders
  readonly method: string
  readonly parameters: RawParameters
  /** Absolute URL of the concrete path. */
  readonly resource: string
  /** Aborted when the client has gone away before its answer. */
  readonly gone: AbortSignal
}

export interface Counter extends Workshop, FaultSettings {
  readonly paywall: Paywall
}

export interface Answered {
  readonly reply: Reply
  /** Set when the reply is the paid answer: its arrival is recorded. */
  readonly delivered?: Entry
}

/** A paid route: no payment 402, one payment is taken and answered. */
export async function servePaid(counter: Counter, request: RouteRequest): Promise<Answered> {
  // HEAD shows what GET would be offered; a payment sent with it is left alone.
  const detections =
    request.method === 'HEAD' ? [] : request.revision.protocols.map((each) => each.detect(request.headers))
  const found = detections.filter(({ kind }) => kind !== 'none')
  const [detection] = found
  if (found.length > 1) {
    return {
      reply: problem('payments_conflict', 'the request carries payments of two protocols', { charged: 'no' }),
    }
  }
  if (detection === undefined) {
    request.tally.count('unpaid')
    return { reply: challenge(request, 'payment_required', 'this path answers once it is paid for') }
  }
  request.tally.count('presented')
  return timed(counter.now, request, () => takePayment(counter, request, detection))
}

async function takePayment(counter: Counter, request: RouteRequest, detection: Detection): Promise<Answered> {
  switch (detection.kind) {
    case 'none':
      return { reply: challenge(request, 'payment_required', 'this path answers once it is paid for') }
    case 'malformed':
      return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
    case 'refused':
      return { reply: challenge(request, detection.code, detection.detail) }
    case 'payment':
      break
  }
  const unready = unreadyFailure(request.served.readiness)
  if (unready !== undefined) return { reply: failed(unready, 'no') }
  const validated = request.served.validate(request.parameters)
  if (validated.kind === 'invalid') return { reply: invalid(validated.errors) }
  try {
    return answer(counter, request, await buy(counter, request, detection.payment, validated.args))
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    counter.report(fault)
    // What the ledger knows of this payment could not be asked.
    return { reply: problem('ledger_unavailable', UNASKED, { charged: 'unknown', headers: SOON }) }
  }
}

const UNASKED = 'the record of payments cannot be reached now'
const SOON = { 'Retry-After': '2' }

function buy(counter: Counter, request: RouteRequest, payment: Payment, args: Arguments): Promise<Outcome> {
  const { served, revision, resource, gone } = request
  const { route } = served
  const { protocol, network } = payment
  const digest = digestArguments(route.operation, args)
  const { price } = route.operation
  if (price === undefined) throw new Error('a paid route has a price')
  return purchase(counter.paywall, {
    payment,
    offer: { route, resource, scope: scopeOf(route, digest), price },
    revision: revision.catalog.revision,
    digest,
    job: {
      run: ({ payment: id, payer, patience }) =>
        work(counter, served, revision, args, { id, protocol: protocol.name, network, payer }, patience),
      check: checkOf(counter, request, args),
      store: served.store,
    },
    gone,
  })
}

function checkOf(
  counter: Workshop,
  { served: { route, check }, revision: { operations } }: RouteRequest,
  args: Arguments,
): Job['check'] {
  const { operation } = route
  if (check === undefined) return undefined
  return (patience) => rehearse(counter, { operation, operations, args, patience }, check)
}

/** What a payment can be bound to: one operation with its arguments, however they were spelled. */
function scopeOf({ operation }: Route, digest: string): string {
  return `${operation.id}:${digest}`
}

async function work(
  counter: Workshop,
  { route, handler, preview, store }: ServedRoute,
  { operations }: Revision,
  args: Arguments,
  payment: PaymentFacts | undefined,
  patience: number,
): Promise<StoredAnswer> {
  const { operation } = route
  const reuse = store === undefined ? 'cached' : 'never'
  const result = await execute(counter, { operation, handler, args, payment, patience, reuse, operations })
  return envelop(route, result, preview, counter.now())
}

function answer(counter: Counter, request: RouteRequest, outcome: Outcome): Answered {
  switch (outcome.kind) {
    case 'delivered': {
      const headers = { ...PAID, ...receiptHeaders(request, outcome, 200) }
      return { reply: sold(outcome.answer, headers), delivered: outcome.entry }
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

const REUSED = {
  payment_reused:
    'this payment was used before, for another request or for an answer that was delivered; it is charged once at most',
  identifier_reused:
    'this payment-identifier belongs to another request of the same payer; nothing was charged now',
} as const

function receiptHeaders(
  { revision }: RouteRequest,
  { entry, receipt }: Pick<Extract<Outcome, { kind: 'owed' }>, 'entry' | 'receipt'>,
  status: number,
): Readonly<Record<string, string>> {
  const protocol = revision.protocols.find(({ name }) => name === entry.protocol)
  return { 'Ratecard-Payment': entry.id, ...protocol?.receiptHeaders(entry, receipt, status) }
}

const PAID = { 'Cache-Control': 'private, no-cache', Vary: 'PAYMENT-SIGNATURE, Authorization' }

function sold(stored: StoredAnswer, headers: Readonly<Record<string, string>>): Reply {
  if (stored.kind === 'text')
    return { status: 200, headers: { 'Content-Type': stored.type, ...headers }, body: stored.text }
  return {
    status: 200,
    headers: { 'Content-Type': JSON_TYPE, ...headers },
    body: JSON.stringify(stored.value),
  }
}

function refuse(request: RouteRequest, { code, detail }: Refusal): Reply {
  if (ERRORS[code].status === 402) return challenge(request, code, detail)
  return problem(code, detail, {
    charged: 'no',
    headers: ERRORS[code].retryable ? { 'Retry-After': '5' } : {},
  })
}

function challenge(
  request: RouteRequest,
  code: Refusal['code'],
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const { unpaid } = request.served
  if (unpaid === undefined) return problem(code, detail, { charged: 'no', headers })
  const { route, validate, readiness } = request.served
  const validated = validate(request.parameters)
  const scope =
    validated.kind === 'valid' ? scopeOf(route, digestArguments(route.operation, validated.args)) : 'none'
  const wouldFail = foresee(readiness, validated)
  return unpaid({ resource: resourceOf(request, validated), scope, code, detail, wouldFail, headers })
}

/**
 * What is offered: the path that was asked for; where its values cannot be, as when a prober asks for the template
 * itself, the catalog's example, for an index that lists what it met would send buyers to a path that never answers.
 */
function resourceOf({ resource, served, revision }: RouteRequest, validated: Validated): string {
  const misread =
    validated.kind === 'invalid' && validated.errors.some(({ loc: [where] }) => where === 'path')
  return misread ? revision.facts.baseUrl + examplePath(served.route) : resource
}

function foresee(readiness: Readiness, validated: Validated): WouldFail | undefined {
  const unready = UNREADY[readiness]
  if (unready !== undefined) return { status: ERRORS[unready.code].status, ...unready }
  if (validated.kind === 'valid') return undefined
  return { status: 422, code: 'parameters_invalid', detail: validated.errors.map(asJson) }
}

function asJson({ loc, msg, type, input, ctx }: ValidationError): JsonObject {
  return compact({ type, loc: [...loc], msg, input: input ?? null, ctx })
}

/** Samples and free routes: payment headers are not even looked at. */
export async function serveFree(counter: Counter, request: RouteRequest): Promise<Answered> {
  const { served } = request
  const unready = unreadyFailure(request.served.readiness)
  if (unready !== undefined) return { reply: failed(unready, 'no') }
  const validated = served.validate(request.parameters)
  if (validated.kind === 'invalid') return { reply: invalid(validated.errors) }
  try {
    const { timeout } = served.route.operation
    const stored = await work(counter, served, request.revision, validated.args, undefined, timeout)
    return { reply: sold(stored, { 'Cache-Control': 'no-cache' }) }
  } catch (fault) {
    return { reply: faultReply(counter, request.served, fault, 'no') }
  }
}
