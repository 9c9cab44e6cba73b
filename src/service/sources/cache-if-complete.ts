import type { Context, Keeping } from 'ratecard/handler'

/** Thrown inside `keep` because failures are shared with waiting callers and never cached. */
class Incomplete extends Error {
  readonly value: unknown
  readonly at: Date

  constructor(value: unknown, at: Date) {
    super('the value has gaps')
    this.value = value
    this.at = at
  }
}

/** Caches a complete value as `keep` does. An incomplete one is returned to the waiting callers and not cached. */
export async function cacheIfComplete<Value>(
  { keep, now }: Pick<Context, 'keep' | 'now'>,
  name: string,
  keeping: Keeping,
  isValue: (value: unknown) => value is Value,
  isComplete: (value: Value) => boolean,
  produce: (signal: AbortSignal) => Promise<Value>,
): Promise<{ readonly value: Value; readonly at: Date }> {
  try {
    return await keep(name, keeping, isValue, async (signal) => {
      const value = await produce(signal)
      if (isComplete(value)) return value
      throw new Incomplete(value, now())
    })
  } catch (cause) {
    if (!(cause instanceof Incomplete) || !isValue(cause.value)) throw cause
    return { value: cause.value, at: cause.at }
  }
}
