import { Failure } from '../errors.ts'
import { toPublicError, toValidationError, type FaultDeps } from '../purchase/problem.ts'
import { failed, invalid, type Reply } from './reply.ts'
import type { ServedRoute } from './revision.ts'

/** What a handler has thrown, as the caller may see it. */
export function faultReply(
  settings: FaultDeps,
  { route }: Pick<ServedRoute, 'route'>,
  fault: unknown,
  charged: 'no' | 'yes',
): Reply {
  const told = toPublicError(settings, fault, charged)
  if (told instanceof Failure) return failed(told, charged)
  const place = route.parameters.find(({ name }) => name === told.parameter)?.in ?? 'query'
  const { type, msg, ctx } = toValidationError(told)
  return invalid([{ type, loc: [place, told.parameter], msg, ctx }], charged)
}
