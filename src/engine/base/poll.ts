export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** How often a request is repeated: first pause in milliseconds, factor of each further pause. */
export interface Pace {
  readonly first: number
  readonly factor: number
  readonly longest: number
  /** Total time in milliseconds. */
  readonly patience: number
}

/** Repeats a request until it has an answer; undefined when there is none in time. */
export async function poll<T>(
  { now, sleep }: Clock,
  { first, factor, longest, patience }: Pace,
  ask: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const end = now() + patience
  for (let pause = first; now() < end; pause = Math.min(pause * factor, longest)) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await sleep(pause)
  }
  return undefined
}
