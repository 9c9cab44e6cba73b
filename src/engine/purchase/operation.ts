import type { Operation } from '../catalog/catalog.ts'
import { Failure } from '../errors.ts'
import type { Arguments, UntypedCheck, UntypedHandler } from '../handler.ts'
import { digestJson, type Json } from '../json.ts'
import type { Refusal } from '../protocols/protocol.ts'
import type { Preview } from './answer.ts'
import type { Store } from './request.ts'

/** One operation with all it takes to run it, whichever face it is asked through. */
export interface ServedOperation {
  readonly operation: Operation
  readonly handler: UntypedHandler
  readonly preview: Preview | undefined
  /** Of work that is paid for first. */
  readonly check: UntypedCheck | undefined
  /** Of a handler that stores something. */
  readonly store: Store | undefined
  readonly readiness: Readiness
}

/** By the name of their handlers, for handlers that ask others. */
export type Operations = ReadonlyMap<string, ServedOperation>

/** Whether an operation can be run at all. */
export type Readiness = 'ready' | 'planned' | 'not_configured'

/** Part of every 402 of such a route: an error, with its stack, is made only where it is thrown. */
export const UNREADY: Readonly<Record<Readiness, Refusal | undefined>> = {
  ready: undefined,
  planned: { code: 'not_implemented', detail: 'this route is announced and not served yet' },
  not_configured: { code: 'not_configured', detail: 'a source of this route has no credentials here' },
}

export function unreadyFailure(readiness: Readiness): Failure | undefined {
  const unready = UNREADY[readiness]
  return unready === undefined ? undefined : new Failure(unready.code, unready.detail)
}

/** What a payment can be bound to: one operation with its arguments, however they were spelled. */
export function scopeOf({ id }: Operation, digest: string): string {
  return `${id}:${digest}`
}

/** Equal for equal arguments, whichever face of the operation they came through. */
export function digestArguments(operation: Operation, args: Arguments): string {
  const named: Record<string, Json> = {}
  for (const [name, value] of Object.entries(args)) if (value !== undefined) named[name] = value
  return digestJson({
    handler: operation.handler,
    upstream: operation.upstream?.url ?? null,
    arguments: named,
  })
}

/** Every network or facilitator that the price could be paid through has been withdrawn. */
export const NO_OFFER = new Failure('not_configured', 'no way to pay is offered at present', {
  retryAfter: 60,
})
