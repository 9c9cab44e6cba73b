import type { IncomingHttpHeaders } from 'node:http'
import { quoteMembers } from '../catalog/price/text.ts'
import { Failure, NOT_CHARGED, type InvalidParameter } from '../base/errors.ts'
import type { Arguments } from '../handler.ts'
import { compact, type JsonObject } from '../base/json.ts'
import { runExempt, type ExemptDeps, isStranger } from '../purchase/run-exempt.ts'
import type { ExemptCaller } from '../purchase/exempt-caller.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { formatShort, type Micros } from '../base/money.ts'
import type { Detection, Payment, PaymentProtocol } from '../payment/payment.ts'
import type { Refusal } from '../base/errors.ts'
import {
  demandSignIn,
  findSigner,
  type FoundSigner,
  SIGN_IN,
  NO_PROOF,
  type SignInDeps,
} from '../sign-in/find-signer.ts'
import { digestArguments, invoke, scopeOf, unreadyFailure, type Operations } from '../purchase/execution.ts'
import {
  NO_OFFER,
  problemMembers,
  toPublicError,
  toValidationError,
  type FaultDeps,
} from '../purchase/problem.ts'
import { type Paid, type PurchaseResult } from '../purchase/result.ts'
import {
  findPayment,
  purchaseCall,
  quoteCall,
  replyTo,
  type PaidCall,
  type PaidCallDeps,
} from '../purchase/purchase.ts'
import { withMetrics, type RouteCounters } from '../usage/counts.ts'
import { answered, failed, invalid, problem, refused, type AnswerLink, type ToolReply } from './tool-reply.ts'
import type { ServedTool, ToolServer } from './tool-server.ts'

/** What tool calls need besides the call. */
export interface ToolCallDeps extends PaidCallDeps, ExemptDeps, FaultDeps {
  readonly baseUrl: string
}

/** One call of one tool. */
export interface ToolCall {
  readonly server: ToolServer
  readonly tool: ServedTool
  readonly operations: Operations
  /** Revision of the catalog. */
  readonly revision: string
  readonly arguments: unknown
  readonly meta: JsonObject
  readonly headers: IncomingHttpHeaders
  /** Names of the MCP extensions that the client supports. */
  readonly extensions: ReadonlySet<string>
  readonly counters: RouteCounters
  /** Counts a credential of which only the upstream can say whether it is valid: why its sender has to wait. */
  readonly overspent: () => Promise<Failure | undefined>
  /** Aborted when the client disconnects before its answer. */
  readonly gone: AbortSignal
}

export interface Answered {
  readonly reply: ToolReply
  /** Set when the reply is a paid answer, whose delivery is tracked. */
  readonly delivered?: PaymentRecord
  /** The price of the call, if its arguments are valid. */
  readonly price?: Micros
  /** Name of the API key. */
  readonly customer?: string
  /** Whether a call of something that is sold carried a payment; undefined for callers who need not pay. */
  readonly paid?: boolean
}

/** Checks arguments, then the payment, then runs the handler: errors before that cost nothing. */
export async function answerCall(deps: ToolCallDeps, call: ToolCall): Promise<Answered> {
  const { tool, counters } = call
  const checked = tool.check(call.arguments)
  if (tool.served.operation.price === undefined) {
    return withMetrics(deps.now, call, async () => ({
      reply: checked.kind === 'invalid' ? invalid(checked.errors) : await runFree(deps, call, checked.args),
    }))
  }
  const exempt = tool.served.exemptCallerOf?.(call.headers)
  if (exempt !== undefined && checked.kind === 'valid') {
    const { reply, customer } = await withMetrics(deps.now, call, () =>
      callExempt(deps, call, exempt, checked.args),
    )
    if (reply !== undefined) return { reply, ...(customer === undefined ? {} : { customer }) }
  }
  const detection = findPayment(call.server.protocols.map((each) => each.tools.detect(call.meta)))
  counters.count(detection.kind === 'none' ? 'unpaid' : 'presented')
  const paid = detection.kind !== 'none'
  if (checked.kind === 'invalid') return { reply: invalid(checked.errors), paid }
  const { args } = checked
  const bought = { args, quote: quoteCall(tool.served.operation, args) }
  return { ...(await answerPaid(deps, call, detection, bought)), price: bought.quote.amount, paid }
}

interface ExemptCall {
  /** Undefined when the upstream refuses the credential: the call is for sale. */
  readonly reply?: ToolReply
  readonly customer?: string
}

/**
 * Serves a caller who is exempt from payment. A payment that comes along is used only when the upstream refuses the
 * credential.
 */
async function callExempt(
  deps: ToolCallDeps,
  { tool: { endpoint, served }, operations, counters, overspent }: ToolCall,
  exempt: ExemptCaller,
  args: Arguments,
): Promise<ExemptCall> {
  const customer = exempt.kind === 'customer' ? { customer: exempt.name } : {}
  const unready = unreadyFailure(served.readiness)
  if (unready !== undefined) return { ...customer, reply: failed(unready) }
  const spent = isStranger(deps, exempt) ? await overspent() : undefined
  if (spent !== undefined) return { reply: failed(spent) }
  try {
    const done = await runExempt(deps, exempt, { endpoint, served, operations, args })
    return done.kind === 'refused' ? {} : { ...customer, reply: answered(done.answer, {}) }
  } catch (fault) {
    return { ...customer, reply: thrown(toPublicError(deps, fault, 'no')) }
  } finally {
    if (!isStranger(deps, exempt)) counters.count('keyed')
  }
}

async function answerPaid(
  deps: ToolCallDeps,
  call: ToolCall,
  detection: Detection,
  bought: Bought,
): Promise<Answered> {
  if (detection.kind === 'none') {
    // A missing setting is reported at once, since a payment would buy nothing.
    const unready = unreadyFailure(call.tool.served.readiness)
    if (unready !== undefined) return { reply: failed(unready) }
    return { reply: offer(call, bought, { code: 'payment_required', detail: priceSentence(call, bought) }) }
  }
  return withMetrics(deps.now, call, async () => {
    switch (detection.kind) {
      case 'malformed':
        return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
      case 'refused':
        return { reply: offer(call, bought, detection) }
      case 'action': {
        const done = await detection.action.run()
        return {
          reply:
            done.kind === 'done'
              ? answered({ kind: 'json', value: done.result }, done.meta)
              : offer(call, bought, done.refusal),
        }
      }
      case 'payment':
        return pay(deps, call, detection.payment, bought)
    }
  })
}

/** For people whose client shows the result unchanged. */
function priceSentence({ tool, server: { identity, url } }: ToolCall, { quote }: Bought): string {
  const { name } = tool.endpoint.tool
  const link = identity.websiteUrl ?? url
  return `${name} costs $${formatShort(quote.amount)} for this call; nothing was run or charged. How to pay, also with a client that cannot: ${link}`
}

/** The arguments of a call and their price. */
type Bought = Pick<PaidCall, 'args' | 'quote'>

async function pay(deps: ToolCallDeps, call: ToolCall, payment: Payment, bought: Bought): Promise<Answered> {
  const { tool, operations, revision, gone } = call
  const { endpoint, served } = tool
  const paid = { payment, endpoint, resource: endpoint.url, served, operations, revision, ...bought, gone }
  return renderResult(deps, call, { ...bought, payment }, await purchaseCall(deps, paid))
}

/** Runs a free tool without a payment, for a signed-in caller or anybody. */
async function runFree(deps: ToolCallDeps, call: ToolCall, args: Arguments): Promise<ToolReply> {
  const { endpoint, served } = call.tool
  const unready = unreadyFailure(served.readiness)
  if (unready !== undefined) return failed(unready)
  try {
    const found = await findCaller(deps, call)
    if (found.kind === 'missing' || found.kind === 'refused') {
      const code = found.kind === 'missing' ? 'signature_required' : 'signature_refused'
      const { url: uri, networks } = call.server
      const extra = { extensions: demandSignIn(deps, { uri, networks }) }
      return problem(code, found.detail, { charged: 'no', extra })
    }
    const { operations } = call
    const timeLeft = served.operation.timeout
    const caller = { payment: undefined, signer: found.kind === 'signer' ? found.address : undefined }
    return answered(await invoke(deps, { endpoint, served, operations, args, caller, timeLeft }), {})
  } catch (fault) {
    return thrown(toPublicError(deps, fault, 'no'))
  }
}

/**
 * The answer to a call without a payment that can be taken: every protocol's offer, each where its clients look for it. A
 * client that knows an extension of MCP for it gets that instead.
 */
function offer(
  { tool, extensions }: ToolCall,
  { args, quote }: Bought,
  { code, detail, reoffer }: Refusal,
  meta: JsonObject = {},
): ToolReply {
  const { endpoint, challengesOf, served } = tool
  const { operation } = served
  const scope = scopeOf(operation, digestArguments(operation, args))
  const challenges = [...challengesOf(quote.amount).values()]
  if (challenges.length === 0) return failed(NO_OFFER, NOT_CHARGED, meta)
  const demands = challenges.map((challenge) =>
    challenge.demand({ resource: endpoint.url, scope, error: code, reoffer }),
  )
  const known = demands.find(({ extension }) => extension !== undefined && extensions.has(extension.name))
  if (known?.extension !== undefined) return { status: 402, result: { ...known.extension.result } }
  const { price, meter } = operation
  const content = {
    // The first thing to read. A text block before the JSON would break clients: x402 puts the offer into the first one.
    detail,
    ...joined(demands.map((each) => each.content)),
    // A missing payment is no problem: its members would be repeated in each copy.
    ...(code === 'payment_required'
      ? { status: 402, code, charged: 'no' }
      : problemMembers(code, detail, 'no')),
    ...(price === undefined ? {} : { price: quoteMembers(price, quote, meter) }),
  }
  return refused(402, content, joined([...demands.map((each) => each.meta), meta]))
}

function joined(objects: readonly JsonObject[]): JsonObject {
  return objects.reduce<JsonObject>((all, each) => ({ ...all, ...each }), {})
}

/** The purchased answer, or the error and what was charged. */
function renderResult(
  deps: ToolCallDeps,
  call: ToolCall,
  bought: Bought & { readonly payment: Payment },
  result: PurchaseResult,
): Answered {
  const reply = replyTo(deps, result)
  const { payment } = bought
  switch (reply.kind) {
    case 'answered': {
      // The answer of an earlier payment comes with that payment's receipt.
      const isOwn = reply.record.authorizationHash === payment.authorizationHash
      const earlier = isOwn ? {} : { 'ratecard/charged': 'earlier' }
      const meta = { ...receiptMeta(call, payment, reply, 200), ...earlier }
      const link = linkOf(deps, call, reply.record)
      return { reply: answered(reply.answer, meta, link), delivered: reply.record }
    }
    case 'streaming':
      throw new TypeError('the result of a tool is sent whole')
    case 'offer': {
      const { refusal, failed: record } = reply
      const meta = record && protocolOf(call, payment, record)?.tools.failure(record, refusal.code)
      return { reply: offer(call, bought, refusal, meta) }
    }
    case 'fault': {
      const { fault, charge, paid } = reply
      const status = fault instanceof Failure ? fault.status : 422
      const meta = paid === undefined ? {} : receiptMeta(call, payment, paid, status)
      return { reply: thrown(fault, charge, meta) }
    }
    case 'problem': {
      const { code, detail, charged, payment: id, retryAfter } = reply
      const isPending = code === 'payment_pending' && id !== undefined
      const status = isPending ? `${deps.baseUrl}/payments/${id}` : undefined
      const extra = compact({ payment: id, status_url: status, retry_after: retryAfter })
      return { reply: problem(code, detail, { charged, extra }) }
    }
  }
}

/** The first revision of MCP with links to resources. */
const LINKS_SINCE = '2025-06-18'

/** Undefined when the answer is not stored. */
function linkOf(
  { baseUrl }: ToolCallDeps,
  { headers }: ToolCall,
  { id, answer, settledAt = 0, redeliver }: PaymentRecord,
): AnswerLink | undefined {
  if (answer === undefined) return undefined
  return {
    uri: `${baseUrl}/payments/${id}/${answer.digest}`,
    until: new Date(settledAt + redeliver).toISOString(),
    isKnown: String(headers['mcp-protocol-version'] ?? '') >= LINKS_SINCE,
  }
}

/** A handler's error as the caller may see it. */
function thrown(fault: Failure | InvalidParameter, charge = NOT_CHARGED, meta: JsonObject = {}): ToolReply {
  if (fault instanceof Failure) return failed(fault, charge, meta)
  return invalid([{ ...toValidationError(fault), loc: ['arguments', fault.parameter] }], charge, meta)
}

/** The id under which the payment's state is available. */
const PAYMENT = 'ratecard/payment'

function receiptMeta(
  call: ToolCall,
  payment: Payment,
  { record, receipt }: Paid,
  status: number,
): JsonObject {
  return {
    [PAYMENT]: record.id,
    ...protocolOf(call, payment, record)?.tools.receipt(record, receipt, status),
  }
}

/** The protocol of a record: in the form of the payment that came, where it is of the same protocol. */
function protocolOf(
  { server }: ToolCall,
  payment: Payment,
  { protocol }: PaymentRecord,
): PaymentProtocol | undefined {
  return [payment.protocol, ...server.protocols].find(({ name }) => name === protocol)
}

/** The signer of a call of a free tool: none, an address, or an invalid proof. `_meta` comes before the header. */
async function findCaller(
  deps: ToolCallDeps,
  call: ToolCall,
): Promise<FoundSigner | { readonly kind: 'nobody' }> {
  const { server, tool, meta, headers } = call
  const sent = meta[SIGN_IN] ?? headers[SIGN_IN]
  if (sent !== undefined) return findSigner(signInDeps(deps), sent, server.url)
  return tool.endpoint.tool.requires === 'signer' ? NO_PROOF : { kind: 'nobody' }
}

function signInDeps({ purchases: { ledger }, now, random }: ToolCallDeps): SignInDeps {
  return { ledger, now, random }
}
