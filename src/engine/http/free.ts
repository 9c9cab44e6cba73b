import { failed, invalid, sold } from './reply.ts'
import type { FaultSettings } from '../work/fault.ts'
import { faultReply } from './fault.ts'
import { NOBODY, type Workshop } from '../work/execute.ts'
import { unreadyFailure } from '../work/readiness.ts'
import type { Answered, RouteRequest } from './request.ts'
import { work } from '../work/work.ts'

/** Samples and free routes: payment headers are not even looked at. */
export async function serveFree(counter: Workshop & FaultSettings, request: RouteRequest): Promise<Answered> {
  const { served } = request
  const unready = unreadyFailure(request.served.readiness)
  if (unready !== undefined) return { reply: failed(unready, 'no') }
  const validated = served.validate(request.parameters)
  if (validated.kind === 'invalid') return { reply: invalid(validated.errors) }
  try {
    const { timeout } = served.route.operation
    const { operations } = request.revision
    const { args } = validated
    const face = served.route
    const stored = await work(counter, { face, served, operations, args, caller: NOBODY, patience: timeout })
    return { reply: sold(stored, { 'Cache-Control': 'no-cache' }) }
  } catch (fault) {
    return { reply: faultReply(counter, request.served, fault, 'no') }
  }
}
