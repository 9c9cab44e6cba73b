import { setMaxListeners } from 'node:events'
import type { Cache, Fetched, Served } from '../cache/cache.ts'
import type { Face, Operation } from '../catalog/catalog.ts'
import { toArgument } from '../catalog/parameter.ts'
import { Failure } from '../errors.ts'
import {
  isAnswer,
  type Answer,
  type Argument,
  type Arguments,
  type Context,
  type Part,
  type UntypedCheck,
  type UntypedHandler,
} from '../handler.ts'
import type { StoredAnswer } from '../ledger/entry.ts'
import { wrapResponse } from './answer.ts'
import { digestArguments, unreadyFailure, type Operations, type ServedOperation } from './operation.ts'

/** What running handlers needs of the world. */
export interface ExecutionDeps {
  readonly cache: Cache
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
}

/** What is known of whoever asks. */
export type Caller = Pick<Context, 'payment' | 'signer'>

export const ANONYMOUS: Caller = { payment: undefined, signer: undefined }

export interface HandlerRun {
  readonly operation: Operation
  readonly handler: UntypedHandler
  readonly args: Arguments
  readonly caller: Caller
  /** Milliseconds this caller can wait. */
  readonly timeLeft: number
  /** `never` for work that leaves something behind: each payment has its own. */
  readonly reuse: 'cached' | 'never'
  /** What the handler may ask. */
  readonly operations: Operations
}

/**
 * Runs one operation, through its cache when it has one. Rejects with `Failure('handler_timeout')` when the caller's
 * time is over; work that others share goes on for them until the operation's own timeout.
 */
export async function execute(deps: ExecutionDeps, work: HandlerRun): Promise<Served<Answer>> {
  const { operation, args, timeLeft } = work
  const began = deps.now()
  // What a handler keeps for several answers may be older than its answer.
  const told = (served: Served<Answer>): Served<Answer> => ({
    ...served,
    cached: served.cached || served.at < began,
  })
  if (operation.cache === undefined || work.reuse === 'never') {
    const fetched = await run(deps, work, Math.min(operation.timeout, timeLeft), work.caller)
    return told({ ...fetched, cached: false, stale: false })
  }
  const key = `v2:${operation.handler}:${operation.form}:${digestArguments(operation, args)}`
  const shared = deps.cache.through(key, operation.cache, isAnswer, () =>
    run(deps, work, operation.timeout, ANONYMOUS),
  )
  return told(await within(timeLeft, shared))
}

/** One call of an operation, for one caller. */
export interface Call extends Omit<HandlerRun, 'operation' | 'handler' | 'reuse'> {
  readonly face: Face
  readonly served: ServedOperation
}

/** Runs an operation, and puts the result into the form that is sold and stored. */
export async function invoke(deps: ExecutionDeps, call: Call): Promise<StoredAnswer> {
  const { face, served, ...rest } = call
  const { operation, handler, preview, store } = served
  // An answer to somebody who has signed in is theirs alone.
  const reuse = store === undefined && rest.caller.signer === undefined ? 'cached' : 'never'
  const result = await execute(deps, { ...rest, operation, handler, reuse })
  return wrapResponse(face, result, preview, deps.now())
}

/** What a handler checks before it is paid for: rejects when the work would fail for good. */
export async function preflightCall(
  deps: ExecutionDeps,
  { served: { operation }, operations, args, timeLeft }: Omit<Call, 'face' | 'caller'>,
  check: UntypedCheck,
): Promise<void> {
  const timeout = Math.min(operation.timeout, timeLeft)
  await limited(timeout, (signal) =>
    check(args, contextOf(deps, operations, { signal, timeout, ...ANONYMOUS })),
  )
}

async function run(
  deps: ExecutionDeps,
  { handler, args, operations }: HandlerRun,
  timeout: number,
  caller: Caller,
): Promise<Fetched<Answer>> {
  const { now } = deps
  const answer = await limited(timeout, (signal) =>
    handler(args, contextOf(deps, operations, { signal, timeout, ...caller })),
  )
  if ('content' in answer) return { value: answer, at: now() }
  const { fetchedAt, freshFor, ...value } = answer
  const at = fetchedAt?.getTime() ?? now()
  return freshFor === undefined ? { value, at } : { value, at, freshFor }
}

interface Occasion extends Caller, Pick<Context, 'signal'> {
  readonly timeout: number
}

function contextOf(
  deps: ExecutionDeps,
  operations: Operations,
  { signal, timeout, payment, signer }: Occasion,
): Context {
  const { cache, now, random } = deps
  return {
    signal,
    now: () => new Date(now()),
    random,
    payment,
    signer,
    ask: (name, parameters) => ask(deps, operations, name, parameters),
    keep: async (name, keeping, isValue, produce) => {
      const kept = await cache.through(`v2:kept:${name}`, keeping, isValue, async (previous) => {
        const value = await limited(timeout, (limit) => produce(limit, previous))
        return { value, at: now() }
      })
      return { value: kept.value, at: new Date(kept.at), stale: kept.stale }
    },
  }
}

async function ask(
  deps: ExecutionDeps,
  operations: Operations,
  name: string,
  parameters: Arguments,
): Promise<Part> {
  const asked = operations.get(name)
  if (asked === undefined) throw new Failure('not_implemented', `this service has no ${name}`)
  const { handler, readiness, store, operation } = asked
  const unready = unreadyFailure(readiness)
  if (unready !== undefined) throw unready
  if (store !== undefined) throw new Error(`${name} stores something: it is for those who pay for it`)
  const args = withDefaults(operation, parameters)
  const timeLeft = operation.timeout
  const work: HandlerRun = {
    operation,
    handler,
    args,
    caller: ANONYMOUS,
    timeLeft,
    reuse: 'cached',
    operations,
  }
  const { value, at, cached, stale } = await execute(deps, work)
  if ('content' in value) throw new Error(`${name} has no envelope`)
  return { answer: value, at: new Date(at), cached, stale }
}

function withDefaults({ parameters }: Operation, given: Arguments): Arguments {
  const defaults = parameters.flatMap((parameter): [string, Argument][] =>
    parameter.default === undefined ? [] : [[parameter.name, toArgument(parameter, parameter.default)]],
  )
  return { ...Object.fromEntries(defaults), ...given }
}

/** Gives the work a signal that ends with it. */
async function limited<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  // Handlers may ask many sources at once: that is no leak.
  setMaxListeners(0, controller.signal)
  try {
    return await within(ms, work(controller.signal))
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
