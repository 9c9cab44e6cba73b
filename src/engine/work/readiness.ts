import { Failure } from '../errors.ts'
import type { Refusal } from '../protocols/protocol.ts'

/** Whether an operation can be run at all. */
export type Readiness = 'ready' | 'planned' | 'not_configured'

/** Said in every 402 of such a route: an error, with its stack, is made only where it is thrown. */
export const UNREADY: Readonly<Record<Readiness, Refusal | undefined>> = {
  ready: undefined,
  planned: { code: 'not_implemented', detail: 'this route is announced and not served yet' },
  not_configured: { code: 'not_configured', detail: 'a source of this route has no credentials here' },
}

export function unreadyFailure(readiness: Readiness): Failure | undefined {
  const unready = UNREADY[readiness]
  return unready === undefined ? undefined : new Failure(unready.code, unready.detail)
}
