import type { Tally } from '../tally/tally.ts'

export interface TimedRequest {
  readonly tally: Tally
  /** A signal that is aborted when the client has gone away. */
  readonly watch: () => AbortSignal
}

/** Counts the answer with the time it took, or that somebody who waited for it got none for a reason of ours. */
export async function timed<T extends { readonly reply: { readonly status: number } }>(
  now: () => number,
  { tally, watch }: TimedRequest,
  answer: () => Promise<T>,
): Promise<T> {
  const began = now()
  const gone = watch()
  try {
    const answered = await answer()
    const { status } = answered.reply
    if (status === 200) tally.succeed(now() - began, now())
    else if (status >= 500 && !gone.aborted) tally.fail(now())
    return answered
  } catch (fault) {
    tally.fail(now())
    throw fault
  }
}
