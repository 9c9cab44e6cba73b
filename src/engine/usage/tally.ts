import { isNothing, noStages, type Counts, type Stage } from './counts.ts'
import { classOf, noLatency } from './latency.ts'

/**
 * Counts what becomes of the requests to one route of this process. It is held by the route itself: an unpaid request
 * costs one addition, no lookup and no look at the clock.
 */
export class Tally {
  #stages = noStages()
  #latency = noLatency()
  #lastSuccess = 0
  #lastFailure = 0
  #failedInARow = 0

  count(stage: Stage): void {
    this.#stages[stage] += 1
  }

  /** `ms`: how long the answer took; `now`: milliseconds since the epoch. */
  succeed(ms: number, now: number): void {
    const place = classOf(ms)
    this.#latency[place] = (this.#latency[place] ?? 0) + 1
    this.#lastSuccess = now
    this.#failedInARow = 0
  }

  fail(now: number): void {
    this.#stages.failed += 1
    this.#lastFailure = now
    this.#failedInARow += 1
  }

  /** What was counted since the last time it was taken; undefined: nothing. */
  take(): Counts | undefined {
    const taken = {
      stages: this.#stages,
      latency: this.#latency,
      lastSuccess: this.#lastSuccess,
      lastFailure: this.#lastFailure,
      failedInARow: this.#failedInARow,
    }
    if (isNothing(taken)) return undefined
    this.#stages = noStages()
    this.#latency = noLatency()
    return taken
  }
}

export interface MeasuredRequest {
  readonly tally: Tally
  /** Aborted when the client has gone away. */
  readonly gone: AbortSignal
}

/** Counts the answer with the time it took, or that a client who waited for it got none for a reason of ours. */
export async function withMetrics<T extends { readonly reply: { readonly status: number } }>(
  now: () => number,
  { tally, gone }: MeasuredRequest,
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
