import type { Operation } from '../catalog/catalog.ts'
import type { UntypedCheck, UntypedHandler } from '../handler.ts'
import type { Store } from '../paywall/paywall.ts'
import type { Preview } from './envelope.ts'
import type { Readiness } from './readiness.ts'

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
