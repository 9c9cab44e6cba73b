import type { AnswerCache, Served } from '../cache/cache.ts'
import type { Operation } from '../catalog/catalog.ts'
import { Failure } from '../errors.ts'
import type { Answer, Arguments, Context, PaymentFacts, UntypedHandler } from '../handler.ts'
import { digestJson, type Json } from '../json.ts'

/** What running handlers needs of the world. */
export interface Workshop {
  readonly cache: AnswerCache
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
}

export interface Work {
  readonly operation: Operation
  readonly handler: UntypedHandler
  readonly args: Arguments
  readonly payment: PaymentFacts | undefined
  /** Milliseconds this caller can wait. */
  readonly patience: number
  /** `never` for work that leaves something behind: each payment has its own. */
  readonly reuse: 'cached' | 'never'
}

/**
 * Runs one operation, through its cache when it has one. Rejects with `Failure('handler_timeout')` when the caller's
 * time is over; work that others share goes on for them until the operation's own timeout.
 */
export async function execute(workshop: Workshop, work: Work): Promise<Served> {
  const { operation, args, patience } = work
  if (operation.cache === undefined || work.reuse === 'never') {
    const at = workshop.now()
    const answer = await run(workshop, work, Math.min(operation.timeout, patience), work.payment)
    return { answer, at, cached: false, stale: false }
  }
  const key = `v1:${operation.handler}:${digestArguments(operation, args)}`
  const shared = workshop.cache.through(key, operation.cache, () =>
    run(workshop, work, operation.timeout, undefined),
  )
  return within(patience, shared)
}

/** Equal for equal arguments, whichever face of the operation they came through. */
export function digestArguments(operation: Operation, args: Arguments): string {
  const named: Record<string, Json> = {}
  for (const [name, value] of Object.entries(args)) if (value !== undefined) named[name] = value
  return digestJson({
    handler: operation.handler,
    upstream: operation.upstream?.url ?? null,
    arguments: named,
  })
}

async function run(
  workshop: Workshop,
  { handler, args }: Work,
  timeout: number,
  payment: PaymentFacts | undefined,
): Promise<Answer> {
  const controller = new AbortController()
  const context: Context = {
    signal: controller.signal,
    now: () => new Date(workshop.now()),
    random: workshop.random,
    payment,
  }
  try {
    return await within(timeout, Promise.resolve(handler(args, context)))
  } finally {
    // Whatever still waits for a source has nobody to wait for any more.
    controller.abort()
  }
}

/** Longest delay of a timer: above it, timers fire at once. */
const LONGEST_MS = 2 ** 31 - 1

function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        const seconds = Math.max(1, Math.ceil(ms / 1000))
        const words = seconds === 1 ? 'a second' : `${seconds} seconds`
        reject(new Failure('handler_timeout', `the answer took longer than ${words}`))
      },
      Math.min(ms, LONGEST_MS),
    )
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
