import { Failure } from 'ratecard/handler'

/** What became of one part of an answer. */
export type Attempt<Value> =
  { readonly kind: 'done'; readonly value: Value } | { readonly kind: 'failed'; readonly failure: Failure }

/** Waits for one part without letting its failure end the others; what is no `Failure` is a fault of ours and is thrown. */
export async function attempt<Value>(work: Promise<Value>): Promise<Attempt<Value>> {
  try {
    return { kind: 'done', value: await work }
  } catch (error) {
    if (error instanceof Failure) return { kind: 'failed', failure: error }
    throw error
  }
}
