import type { Context, Keeping } from 'ratecard/handler'

/** A failure is shared with all who wait for it and never kept: so is, this way, a value with gaps. */
class NotWhole extends Error {
  readonly value: unknown
  readonly at: Date

  constructor(value: unknown, at: Date) {
    super('the value has gaps')
    this.value = value
    this.at = at
  }
}

/** Keeps as `keep` does what is whole; what has gaps goes to those who wait for it, and is asked anew after them. */
export async function keepWhole<Value>(
  { keep, now }: Pick<Context, 'keep' | 'now'>,
  name: string,
  keeping: Keeping,
  isValue: (value: unknown) => value is Value,
  isWhole: (value: Value) => boolean,
  produce: (signal: AbortSignal) => Promise<Value>,
): Promise<{ readonly value: Value; readonly at: Date }> {
  try {
    return await keep(name, keeping, isValue, async (signal) => {
      const value = await produce(signal)
      if (isWhole(value)) return value
      throw new NotWhole(value, now())
    })
  } catch (cause) {
    if (!(cause instanceof NotWhole) || !isValue(cause.value)) throw cause
    return { value: cause.value, at: cause.at }
  }
}
