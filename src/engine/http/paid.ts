import { LedgerError } from '../ledger/ledger.ts'
import type { Detection } from '../protocols/protocol.ts'
import { buy, type Till } from '../work/buy.ts'
import type { FaultSettings } from '../work/fault.ts'
import { timed } from '../work/timed.ts'
import { challenge } from './challenge.ts'
import { tell } from './outcome.ts'
import { invalid, problem } from './reply.ts'
import type { Answered, RouteRequest } from './request.ts'

export type Counter = Till & FaultSettings

/** A paid route: no payment 402, one payment is taken and answered. */
export async function servePaid(counter: Counter, request: RouteRequest): Promise<Answered> {
  // HEAD shows what GET would be offered; a payment sent with it is left alone.
  const detections =
    request.method === 'HEAD' ? [] : request.revision.protocols.map((each) => each.detect(request.headers))
  const found = detections.filter(({ kind }) => kind !== 'none')
  const [detection] = found
  if (found.length > 1) {
    request.tally.count('presented')
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
  const validated = request.served.validate(request.parameters)
  if (validated.kind === 'invalid') return { reply: invalid(validated.errors) }
  try {
    const { served, revision, resource } = request
    const { payment } = detection
    const outcome = await buy(counter, {
      payment,
      face: served.route,
      resource,
      served,
      operations: revision.operations,
      revision: revision.catalog.revision,
      args: validated.args,
      gone: request.watch(),
    })
    return tell(counter, request, outcome)
  } catch (fault) {
    if (!(fault instanceof LedgerError)) throw fault
    counter.report(fault)
    // What the ledger knows of this payment could not be asked.
    return { reply: problem('ledger_unavailable', UNASKED, { charged: 'unknown', headers: SOON }) }
  }
}

const UNASKED = 'the record of payments cannot be reached now'
const SOON = { 'Retry-After': '2' }
