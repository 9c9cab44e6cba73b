import type { Tally } from '../tally/tally.ts'
import type { Reply } from './reply.ts'

export interface TimedRequest {
  readonly tally: Tally
  /** Aborted when the client has gone away. */
  readonly gone: AbortSignal
}

/** Counts the answer with the time it took, or that somebody who waited for it got none for a reason of ours. */
export async function timed<T extends { readonly reply: Reply }>(
  now: () => number,
  { tally, gone }: TimedRequest,
  answer: () => Promise<T>,
): Promise<T> {
  const began = now()
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
