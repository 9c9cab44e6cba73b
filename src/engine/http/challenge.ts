import type { ErrorCode } from '../errors.ts'
import { NO_OFFER } from '../purchase/problem.ts'
import { failed, problem, type Reply } from './reply.ts'
import type { RouteRequest } from './request.ts'

/** The 402 of a request: what it costs, and what would become of it. */
export function challenge(
  request: RouteRequest,
  code: ErrorCode,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const { served, revision } = request
  if (served.challenges.size === 0) return failed(NO_OFFER, 'no')
  if (served.unpaid === undefined) return problem(code, detail, { charged: 'no', headers })
  return served.unpaid({ ...revision.foresights.of(request), code, detail, headers })
}
