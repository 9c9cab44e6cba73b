import { LedgerError } from '../ledger/ledger.ts'
import type { Arguments } from '../handler.ts'
import type { JsonObject } from '../json.ts'
import type { Detection, Payment, Refusal } from '../protocols/protocol.ts'
import { buy } from '../work/buy.ts'
import { digestArguments, scopeOf } from '../work/digest.ts'
import { foreseen } from '../work/fault.ts'
import { unreadyFailure } from '../work/readiness.ts'
import { timed } from '../work/timed.ts'
import { work } from '../work/work.ts'
import { demand } from './demand.ts'
import { tell, thrown } from './outcome.ts'
import { answered, failed, invalid, problem, type ToolReply } from './result.ts'
import { findSigner } from './signer.ts'
import type { Answered, Counter, ToolCall } from './tool-call.ts'

/** Arguments, then the payment, then the work: whatever is wrong before the last costs nothing. */
export async function answerCall(counter: Counter, call: ToolCall): Promise<Answered> {
  const { tool, tally } = call
  const checked = tool.check(call.arguments)
  if (tool.served.operation.price === undefined) {
    return timed(counter.now, call, async () => ({
      reply: checked.kind === 'invalid' ? invalid(checked.errors) : await give(counter, call, checked.args),
    }))
  }
  const detections = call.toolbox.protocols.map((each) => each.tools.detect(call.meta))
  const found = detections.filter(({ kind }) => kind !== 'none')
  const [detection] = found
  tally.count(detection === undefined ? 'unpaid' : 'presented')
  if (found.length > 1)
    return {
      reply: problem('payments_conflict', 'the call carries payments of two protocols', { charged: 'no' }),
    }
  if (checked.kind === 'invalid') return { reply: invalid(checked.errors) }
  if (detection === undefined) return { reply: ask(call, checked.args) }
  return timed(counter.now, call, () => take(counter, call, detection, checked.args))
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
  detection: Detection,
  args: Arguments,
): Promise<Answered> {
  switch (detection.kind) {
    case 'none':
      return { reply: ask(call, args) }
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
  const resource = face.url
  const gone = call.watch()
  try {
    const outcome = await buy(counter, { payment, face, resource, served, operations, revision, args, gone })
    return tell(counter, call, outcome, (refusal, meta) => offer(call, args, refusal, meta))
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    counter.report(fault)
    const detail = 'the record of payments cannot be reached now'
    // What the ledger knows of this payment could not be asked.
    return { reply: problem('ledger_unavailable', detail, { charged: 'unknown', extra: { retry_after: 2 } }) }
  }
}

/** What is free runs without a payment, for whoever has signed in or nobody. */
async function give(counter: Counter, call: ToolCall, args: Arguments): Promise<ToolReply> {
  const { face, served } = call.tool
  const unready = unreadyFailure(served.readiness)
  if (unready !== undefined) return failed(unready, 'no', {})
  try {
    const found = await findSigner(counter, call)
    if (found.kind === 'refused') return found.reply
    const { operations } = call
    const patience = served.operation.timeout
    const caller = { payment: undefined, signer: found.signer }
    return answered(await work(counter, { face, served, operations, args, caller, patience }), {})
  } catch (fault) {
    return thrown(foreseen(counter, fault, 'no'), 'no', {})
  }
}
