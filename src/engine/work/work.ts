import type { Face } from '../catalog/catalog.ts'
import type { Arguments } from '../handler.ts'
import type { StoredAnswer } from '../ledger/entry.ts'
import { envelop } from './envelope.ts'
import { execute, type Caller, type Workshop } from './execute.ts'
import type { Operations, ServedOperation } from './served.ts'

/** One run of an operation for one caller. */
export interface Assignment {
  readonly face: Face
  readonly served: ServedOperation
  readonly operations: Operations
  readonly args: Arguments
  readonly caller: Caller
  /** Milliseconds this caller can wait. */
  readonly patience: number
}

/** Runs what an operation does, and puts the result into the form that is sold and stored. */
export async function work(workshop: Workshop, assignment: Assignment): Promise<StoredAnswer> {
  const { face, served, ...rest } = assignment
  const { operation, handler, preview, store } = served
  // An answer to somebody who has signed in is theirs alone.
  const reuse = store === undefined && rest.caller.signer === undefined ? 'cached' : 'never'
  const result = await execute(workshop, { ...rest, operation, handler, reuse })
  return envelop(face, result, preview, workshop.now())
}
