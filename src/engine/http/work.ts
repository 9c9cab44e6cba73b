import type { Arguments } from '../handler.ts'
import type { StoredAnswer } from '../ledger/entry.ts'
import { envelop } from './envelope.ts'
import { execute, type Caller, type Workshop } from './execute.ts'
import type { Revision, ServedRoute } from './revision.ts'

/** Runs what a route does, and puts the result into the form that is sold and stored. */
export async function work(
  counter: Workshop,
  { route, handler, preview, store }: ServedRoute,
  { operations }: Revision,
  args: Arguments,
  caller: Caller,
  patience: number,
): Promise<StoredAnswer> {
  const { operation } = route
  const reuse = store === undefined ? 'cached' : 'never'
  const result = await execute(counter, { operation, handler, args, caller, patience, reuse, operations })
  return envelop(route, result, preview, counter.now())
}
