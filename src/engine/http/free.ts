import { Failure } from '../errors.ts'
import { failed, invalid, sold } from './reply.ts'
import { toPublicError, type FaultDeps } from '../purchase/problem.ts'
import type { Rate } from '../cache/budget.ts'
import { faultReply } from './fault.ts'
import { ANONYMOUS, invoke, type ExecutionDeps } from '../purchase/execution.ts'
import { unreadyFailure } from '../purchase/execution.ts'
import type { Answered, RouteRequest } from './request.ts'

/** Samples and free routes: payment headers are not even looked at. */
export async function serveFree(
  counter: ExecutionDeps & FaultDeps,
  request: RouteRequest,
): Promise<Answered> {
  const { served } = request
  const unready = unreadyFailure(request.served.readiness)
  if (unready !== undefined) return { reply: failed(unready, 'no') }
  const validated = served.validate(request.parameters)
  if (validated.kind === 'invalid') return { reply: invalid(validated.errors) }
  const spent = await overspent(counter, request)
  if (spent !== undefined) return { reply: failed(spent, 'no') }
  try {
    const { timeout } = served.route.operation
    const { operations } = request.revision
    const { args, ignored } = validated
    const face = served.route
    const stored = await invoke(counter, {
      face,
      served,
      operations,
      args,
      ignored,
      caller: ANONYMOUS,
      timeLeft: timeout,
    })
    return { reply: sold(stored, { 'Cache-Control': 'no-cache' }) }
  } catch (fault) {
    return { reply: faultReply(served, toPublicError(counter, fault, 'no'), 'no') }
  }
}

/** A minute of a reader’s clicks, and more than an index asks for that looks at every sample once. */
const FREE: Rate = { burst: 60, interval: 1_000 }

/** What is free and asks outside sources is given to nobody without end: sources would shut us out for all. */
async function overspent(
  { cache }: ExecutionDeps,
  { served: { operation }, client: clientOf }: RouteRequest,
): Promise<Failure | undefined> {
  if (operation.sources.length === 0 && operation.upstream === undefined) return undefined
  const client = clientOf()
  const wait = client === undefined ? 0 : await cache.spend(client, FREE)
  if (wait === 0) return undefined
  const detail = 'this address has asked for free answers from outside sources too often'
  return new Failure('too_many_requests', detail, { retryAfter: wait / 1_000 })
}
