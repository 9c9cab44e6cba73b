/** Thrown by `beforeDeadline`, whether its own time or the caller's ran out. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'
}

/**
 * Runs `work` for at most `ms` milliseconds and no longer than `signal` allows, then throws `DeadlinePassed`, even when
 * the work ignores the signal it is given.
 *
 * Own timer and listener: `AbortSignal.any` over `AbortSignal.timeout` may be garbage-collected before it fires.
 */
export async function beforeDeadline<Result>(
  signal: AbortSignal,
  ms: number,
  work: (limit: AbortSignal) => Promise<Result>,
): Promise<Result> {
  if (signal.aborted) throw new DeadlinePassed()
  const limit = new AbortController()
  let end = () => {}
  const passed = new Promise<never>((_, reject) => {
    end = () => {
      // First the answer, then the abort: what the abort makes of the work comes too late to matter.
      reject(new DeadlinePassed())
      limit.abort()
    }
  })
  const timer = setTimeout(end, ms)
  signal.addEventListener('abort', end, { once: true })
  try {
    return await Promise.race([passed, work(limit.signal)])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}
