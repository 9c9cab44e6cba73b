import { findPayment, type Detection } from '../protocols/protocol.ts'
import type { FaultDeps } from '../purchase/problem.ts'
import { purchaseCall, type PaidCallDeps } from '../purchase/purchase.ts'
import { withMetrics } from '../tally/tally.ts'
import { challenge } from './challenge.ts'
import { renderResult } from './outcome.ts'
import { invalid, problem } from './reply.ts'
import type { Answered, RouteRequest } from './request.ts'

export type PaidDeps = PaidCallDeps & FaultDeps

/** A paid route: without a payment 402, with one the answer it buys. */
export async function servePaid(deps: PaidDeps, request: RouteRequest): Promise<Answered> {
  const { headers, method, revision, tally } = request
  // HEAD shows what GET would be offered; a payment sent with it is left alone.
  const protocols = method === 'HEAD' ? [] : revision.protocols
  const detection = findPayment(protocols.map((each) => each.detect(headers)))
  tally.count(detection.kind === 'none' ? 'unpaid' : 'presented')
  if (detection.kind === 'none')
    return { reply: challenge(request, 'payment_required', 'this path answers once it is paid for') }
  return withMetrics(deps.now, request, () => takePayment(deps, request, detection))
}

async function takePayment(
  deps: PaidDeps,
  request: RouteRequest,
  detection: Exclude<Detection, { readonly kind: 'none' }>,
): Promise<Answered> {
  switch (detection.kind) {
    case 'malformed':
      return { reply: problem(detection.code, detection.detail, { charged: 'no' }) }
    case 'refused':
      return { reply: challenge(request, detection.code, detection.detail) }
    case 'payment':
      break
  }
  const { served, revision, resource } = request
  const validated = served.validate(request.parameters)
  if (validated.kind === 'invalid') return { reply: invalid(validated.errors) }
  const result = await purchaseCall(deps, {
    payment: detection.payment,
    face: served.route,
    resource,
    served,
    operations: revision.operations,
    revision: revision.catalog.revision,
    args: validated.args,
    ignored: validated.ignored,
    gone: request.watch(),
  })
  return renderResult(deps, request, result)
}
