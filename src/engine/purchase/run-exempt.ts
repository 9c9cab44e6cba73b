import { Failure } from '../base/errors.ts'
import type { StoredAnswer } from '../ledger/payment-record.ts'
import { ANONYMOUS, invoke, type Call, type ExecutionDeps } from './execution.ts'
import { CredentialRefused, type ExemptCaller } from './exempt-caller.ts'
import type { KnownCallers } from './known-callers.ts'
import type { OpenStream } from './request.ts'

export interface ExemptDeps extends ExecutionDeps {
  readonly knownCallers: KnownCallers
}

/** Whether only the upstream can tell who sends this: the call may be nobody's. */
export function isStranger({ knownCallers, now }: ExemptDeps, exempt: ExemptCaller): boolean {
  return exempt.kind === 'caller' && !knownCallers.has(exempt.digest, now())
}

export type ExemptResult =
  | { readonly kind: 'answered'; readonly answer: StoredAnswer | OpenStream }
  /** The call is to be paid for like any other. */
  | { readonly kind: 'refused' }

/**
 * Runs an operation for a caller who is exempt from payment, outside of the ledger. What an upstream answers to a caller with a credential of
 * their own is for that caller: no cache holds it, and no other caller waits for it.
 */
export async function runExempt(
  deps: ExemptDeps,
  exempt: ExemptCaller,
  call: Omit<Call, 'caller' | 'timeLeft'>,
): Promise<ExemptResult> {
  const { knownCallers: known } = deps
  const { served } = call
  const given = {
    ...call,
    caller: ANONYMOUS,
    timeLeft: served.operation.timeout,
    delivery: { until: Infinity },
  }
  if (exempt.kind === 'customer') return { kind: 'answered', answer: await invoke(deps, given) }
  const { handler, digest } = exempt
  const operation = { ...served.operation, cache: undefined }
  try {
    const answer = await invoke(deps, { ...given, served: { ...served, handler, operation } })
    known.add(digest, deps.now())
    return { kind: 'answered', answer }
  } catch (fault) {
    if (fault instanceof CredentialRefused) {
      known.delete(digest)
      return { kind: 'refused' }
    }
    // A caller who is forbidden something has been recognized.
    if (fault instanceof Failure && fault.code === 'upstream_forbidden') known.add(digest, deps.now())
    throw fault
  }
}
