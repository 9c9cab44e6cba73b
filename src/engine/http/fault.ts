import { Failure, type InvalidParameter } from '../errors.ts'
import { toValidationError } from '../purchase/problem.ts'
import { failed, invalid, type Reply } from './reply.ts'
import type { ServedRoute } from './revision.ts'

/** What a handler has thrown, as the caller may see it. */
export function faultReply(
  { route }: Pick<ServedRoute, 'route'>,
  fault: Failure | InvalidParameter,
  charged: 'no' | 'yes',
): Reply {
  if (fault instanceof Failure) return failed(fault, charged)
  const place = route.parameters.find(({ name }) => name === fault.parameter)?.in ?? 'query'
  const { type, msg, ctx } = toValidationError(fault)
  return invalid([{ type, loc: [place, fault.parameter], msg, ctx }], charged)
}
