import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Address } from '../address.ts'
import { Failure, type InvalidParameter } from '../errors.ts'
import type { Arguments } from '../handler.ts'
import { compact, type JsonObject } from '../json.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import { formatPrice } from '../money.ts'
import type { Payment, Protocol, Refusal } from '../protocols/protocol.ts'
import { judgeProof, readProof, signInDemand, type Judged } from '../protocols/x402/siwx.ts'
import { digestArguments, invoke, scopeOf, unreadyFailure, type Operations } from '../purchase/execution.ts'
import {
  NO_OFFER,
  problemMembers,
  replyTo,
  toPublicError,
  toValidationError,
  type FaultDeps,
  type Paid,
  type PurchaseResult,
} from '../purchase/request.ts'
import { findPayment, purchaseCall, type PaidCallDeps } from '../purchase/purchase.ts'
import { withMetrics, type RouteCounters } from '../usage/usage.ts'
import { answered, failed, invalid, problem, refused, type ToolReply } from './result.ts'
import type { ServedTool, ToolServer } from './tool-server.ts'

/** What answering calls needs besides the call. */
export interface ToolCallDeps extends PaidCallDeps, FaultDeps {
  readonly baseUrl: string
}

/** One call of one tool. */
export interface ToolCall {
  readonly server: ToolServer
  readonly tool: ServedTool
  readonly operations: Operations
  /** Of the catalog. */
  readonly revision: string
  readonly arguments: unknown
  readonly meta: JsonObject
  readonly headers: IncomingHttpHeaders
  /** Names of the extensions of MCP the client knows. */
  readonly extensions: ReadonlySet<string>
  readonly counters: RouteCounters
  /** Aborted when the client has gone away before its answer. */
  readonly gone: AbortSignal
}

export interface Answered {
  readonly reply: ToolReply
  /** Set when the reply is the paid answer: its arrival is recorded. */
  readonly delivered?: PaymentRecord
}

/** Arguments, then the payment, then the work: what is wrong before the last costs nothing. */
export async function answerCall(deps: ToolCallDeps, call: ToolCall): Promise<Answered> {
  const { tool, counters } = call
  const checked = tool.check(call.arguments)
  if (tool.served.operation.price === undefined) {
    return withMetrics(deps.now, call, async () => ({
      reply: checked.kind === 'invalid' ? invalid(checked.errors) : await runFree(deps, call, checked.args),
    }))
  }
  const detection = findPayment(call.server.protocols.map((each) => each.tools.detect(call.meta)))
  counters.count(detection.kind === 'none' ? 'unpaid' : 'presented')
  if (checked.kind === 'invalid') return { reply: invalid(checked.errors) }
  const { args } = checked
  if (detection.kind === 'none') {
    // What is missing is said at once where a payment would buy nothing.
    const unready = unreadyFailure(tool.served.readiness)
    if (unready !== undefined) return { reply: failed(unready, 'no', {}) }
    const detail = 'this tool answers once it is paid for'
    return { reply: offer(call, args, { code: 'payment_required', detail }) }
  }
  return withMetrics(deps.now, call, async () => {
    switch (detection.kind) {
      case 'malformed':
        return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
      case 'refused':
        return { reply: offer(call, args, detection) }
      case 'payment':
        return pay(deps, call, detection.payment, args)
    }
  })
}

function offer(call: ToolCall, args: Arguments, refusal: Refusal, meta: JsonObject = {}): ToolReply {
  const { operation } = call.tool.served
  return paymentRequired(call, scopeOf(operation, digestArguments(operation, args)), refusal, meta)
}

async function pay(deps: ToolCallDeps, call: ToolCall, payment: Payment, args: Arguments): Promise<Answered> {
  const { tool, operations, revision, gone } = call
  const { endpoint, served } = tool
  const paid = { payment, endpoint, resource: endpoint.url, served, operations, revision, args, gone }
  const result = await purchaseCall(deps, paid)
  return renderResult(deps, call, result, (refusal, meta) => offer(call, args, refusal, meta))
}

/** What is free runs without a payment, for those who have signed in or anybody. */
async function runFree(deps: ToolCallDeps, call: ToolCall, args: Arguments): Promise<ToolReply> {
  const { endpoint, served } = call.tool
  const unready = unreadyFailure(served.readiness)
  if (unready !== undefined) return failed(unready, 'no', {})
  try {
    const found = await findSigner(deps, call)
    if (found.kind === 'refused') return found.reply
    const { operations } = call
    const timeLeft = served.operation.timeout
    const caller = { payment: undefined, signer: found.signer }
    return answered(await invoke(deps, { endpoint, served, operations, args, caller, timeLeft }), {})
  } catch (fault) {
    return thrown(toPublicError(deps, fault, 'no'), 'no', {})
  }
}

/**
 * The answer to a call without a payment that can be taken: every protocol's offer, each where its clients look for it. A
 * client that knows an extension of MCP for it gets that instead.
 */
function paymentRequired(
  { tool, extensions }: ToolCall,
  scope: string,
  { code, detail }: Refusal,
  meta: JsonObject,
): ToolReply {
  const { endpoint, challenges, served } = tool
  if (challenges.length === 0) return failed(NO_OFFER, 'no', meta)
  const demands = challenges.map((challenge) =>
    challenge.demand({ resource: endpoint.url, scope, error: code }),
  )
  const known = demands.find(({ extension }) => extension !== undefined && extensions.has(extension.name))
  if (known?.extension !== undefined) return { status: 402, result: { ...known.extension.result } }
  const { price } = served.operation
  const content = {
    ...joined(demands.map((each) => each.content)),
    ...problemMembers(code, detail, 'no'),
    ...(price === undefined ? {} : { price: { amount: formatPrice(price), currency: 'USD' } }),
  }
  return refused(402, content, joined([...demands.map((each) => each.meta), meta]))
}

function joined(objects: readonly JsonObject[]): JsonObject {
  return objects.reduce<JsonObject>((all, each) => ({ ...all, ...each }), {})
}

/** The answer that was bought, or what went wrong and what was charged. `offer` asks for another payment. */
function renderResult(
  deps: ToolCallDeps,
  call: ToolCall,
  result: PurchaseResult,
  offer: (refusal: Refusal, meta: JsonObject) => ToolReply,
): Answered {
  const reply = replyTo(deps, result)
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
      const status = isPending ? `${deps.baseUrl}/payments/${payment}` : undefined
      const extra = compact({ payment, status_url: status, retry_after: retryAfter })
      return { reply: problem(code, detail, { charged, extra }) }
    }
  }
}

/** What a handler has thrown, as the caller may see it. */
function thrown(fault: Failure | InvalidParameter, charged: 'no' | 'yes', meta: JsonObject): ToolReply {
  if (fault instanceof Failure) return failed(fault, charged, meta)
  return invalid([{ ...toValidationError(fault), loc: ['arguments', fault.parameter] }], charged, meta)
}

/** Its id is the one under which the payment's state is told. */
const PAYMENT = 'ratecard/payment'

function receiptMeta(call: ToolCall, { entry, receipt }: Paid, status: number): JsonObject {
  return { [PAYMENT]: entry.id, ...protocolOf(call, entry)?.tools.receipt(entry, receipt, status) }
}

function protocolOf({ server }: ToolCall, { protocol }: PaymentRecord): Protocol | undefined {
  return server.protocols.find(({ name }) => name === protocol)
}

/** Where a proof stands in the `_meta` of a call, and x402's header for it; the first goes before the second. */
const META = 'sign-in-with-x'

type Found =
  | { readonly kind: 'known'; readonly signer: Address | undefined }
  | { readonly kind: 'refused'; readonly reply: ToolReply }

/** Who has signed in with a call of a free tool: nobody, an address, or somebody whose proof is not good. */
async function findSigner(deps: ToolCallDeps, call: ToolCall): Promise<Found> {
  const { server, tool, meta, headers } = call
  const sent = meta[META] ?? headers[META]
  if (sent === undefined) {
    if (tool.endpoint.tool.requires !== 'signer') return { kind: 'known', signer: undefined }
    const detail = 'sign the message of extensions["sign-in-with-x"] with the wallet you call for'
    return refuseSigner('signature_required', detail, demandOf(deps, call))
  }
  const proof = readProof(sent)
  if (proof === undefined)
    return refuseSigner('signature_refused', 'the proof cannot be read', demandOf(deps, call))
  const judged = judgeProof(proof, server.url, deps.now())
  if (judged.kind === 'refused') return refuseSigner('signature_refused', judged.detail, demandOf(deps, call))
  if (await isUsed(deps, judged))
    return refuseSigner('signature_refused', 'this proof was used before', demandOf(deps, call))
  return { kind: 'known', signer: judged.address }
}

/** Takes a nonce, once over all processes: of copies that come at once, the first mark is the only one when it is kept. */
async function isUsed(
  { purchases: { ledger }, random }: ToolCallDeps,
  { address, nonce, until }: Extract<Judged, { readonly kind: 'signer' }>,
): Promise<boolean> {
  const name = createHash('sha256').update(`sign-in:${address}:${nonce}`).digest('base64url')
  return (await ledger.addExpiring(name, Buffer.from(random(16)).toString('hex'), until)) > 1
}

function demandOf({ random, now }: ToolCallDeps, { server: { url, networks } }: ToolCall): JsonObject {
  const nonce = Buffer.from(random(16)).toString('hex')
  return { extensions: { [META]: signInDemand({ uri: url, nonce, networks }, now()) } }
}

function refuseSigner(
  code: 'signature_required' | 'signature_refused',
  detail: string,
  extra: JsonObject,
): Found {
  return { kind: 'refused', reply: problem(code, detail, { charged: 'no', extra }) }
}
