import type { Arguments } from '../handler.ts'
import type { JsonObject } from '../json.ts'
import { findPayment, type Detection, type Payment, type Refusal } from '../protocols/protocol.ts'
import { invoke } from '../purchase/execution.ts'
import { digestArguments, scopeOf, unreadyFailure } from '../purchase/execution.ts'
import { toPublicError } from '../purchase/problem.ts'
import { purchaseCall } from '../purchase/purchase.ts'
import { withMetrics } from '../tally/tally.ts'
import { demand } from './demand.ts'
import { renderResult, thrown } from './outcome.ts'
import { answered, failed, invalid, problem, type ToolReply } from './result.ts'
import { findSigner } from './signer.ts'
import type { Answered, Counter, ToolCall } from './tool-call.ts'

/** Arguments, then the payment, then the work: what is wrong before the last costs nothing. */
export async function answerCall(counter: Counter, call: ToolCall): Promise<Answered> {
  const { tool, tally } = call
  const checked = tool.check(call.arguments)
  if (tool.served.operation.price === undefined) {
    return withMetrics(counter.now, call, async () => ({
      reply:
        checked.kind === 'invalid' ? invalid(checked.errors) : await runFree(counter, call, checked.args),
    }))
  }
  const detection = findPayment(call.toolbox.protocols.map((each) => each.tools.detect(call.meta)))
  tally.count(detection.kind === 'none' ? 'unpaid' : 'presented')
  if (checked.kind === 'invalid') return { reply: invalid(checked.errors) }
  if (detection.kind === 'none') return { reply: ask(call, checked.args) }
  return withMetrics(counter.now, call, () => take(counter, call, detection, checked.args))
}

/** What is missing is said at once where a payment would buy nothing. */
function ask(call: ToolCall, args: Arguments): ToolReply {
  const unready = unreadyFailure(call.tool.served.readiness)
  if (unready !== undefined) return failed(unready, 'no', {})
  return offer(call, args, { code: 'payment_required', detail: 'this tool answers once it is paid for' })
}

function offer(call: ToolCall, args: Arguments, refusal: Refusal, meta: JsonObject = {}): ToolReply {
  const { operation } = call.tool.served
  return demand(call, scopeOf(operation, digestArguments(operation, args)), refusal, meta)
}

async function take(
  counter: Counter,
  call: ToolCall,
  detection: Exclude<Detection, { readonly kind: 'none' }>,
  args: Arguments,
): Promise<Answered> {
  switch (detection.kind) {
    case 'malformed':
      return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
    case 'refused':
      return { reply: offer(call, args, detection) }
    case 'payment':
      return pay(counter, call, detection.payment, args)
  }
}

async function pay(counter: Counter, call: ToolCall, payment: Payment, args: Arguments): Promise<Answered> {
  const { tool, operations, revision } = call
  const { face, served } = tool
  const gone = call.watch()
  const paid = { payment, face, resource: face.url, served, operations, revision, args, gone }
  const result = await purchaseCall(counter, paid)
  return renderResult(counter, call, result, (refusal, meta) => offer(call, args, refusal, meta))
}

/** What is free runs without a payment, for those who have signed in or anybody. */
async function runFree(counter: Counter, call: ToolCall, args: Arguments): Promise<ToolReply> {
  const { face, served } = call.tool
  const unready = unreadyFailure(served.readiness)
  if (unready !== undefined) return failed(unready, 'no', {})
  try {
    const found = await findSigner(counter, call)
    if (found.kind === 'refused') return found.reply
    const { operations } = call
    const timeLeft = served.operation.timeout
    const caller = { payment: undefined, signer: found.signer }
    return answered(await invoke(counter, { face, served, operations, args, caller, timeLeft }), {})
  } catch (fault) {
    return thrown(toPublicError(counter, fault, 'no'), 'no', {})
  }
}
