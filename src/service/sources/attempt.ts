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

/** Ways to the same answer, tried one after the other; the failure of the first is the one to report. */
export class Fallbacks {
  #first: Failure | undefined

  /** Undefined when this way fails; what is no `Failure` is thrown. */
  async attempt<Value>(work: () => Promise<Value>): Promise<Value | undefined> {
    const attempted = await attempt(work())
    if (attempted.kind === 'done') return attempted.value
    this.#first ??= attempted.failure
    return undefined
  }

  get failure(): Failure {
    return this.#first ?? new Failure('internal', 'The fallbacks ended without an answer or a failure')
  }
}
