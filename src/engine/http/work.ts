import type { Arguments, PaymentFacts } from '../handler.ts'
import type { StoredAnswer } from '../ledger/entry.ts'
import { envelop } from './envelope.ts'
import { execute, type Workshop } from './execute.ts'
import type { Revision, ServedRoute } from './revision.ts'

/** Runs what a route does, and puts the result into the form that is sold and stored. */
export async function work(
  counter: Workshop,
  { route, handler, preview, store }: ServedRoute,
  { operations }: Revision,
  args: Arguments,
  payment: PaymentFacts | undefined,
  patience: number,
): Promise<StoredAnswer> {
  const { operation } = route
  const reuse = store === undefined ? 'cached' : 'never'
  const result = await execute(counter, { operation, handler, args, payment, patience, reuse, operations })
  return envelop(route, result, preview, counter.now())
}
