import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Cache, Fetched, Served } from '../cache/cache.ts'
import type { Endpoint, Operation, Response, Route } from '../catalog/catalog.ts'
import { toArgument, type IgnoredParameter } from '../catalog/validator.ts'
import { priceMembers } from '../catalog/price/text.ts'
import { Failure, HandlerFailure } from '../base/errors.ts'
import {
  staleWarning,
  type Answer,
  type Argument,
  type Arguments,
  type ContentHead,
  type Context,
  type Part,
  type StreamAnswer,
  type UntypedBackground,
  type UntypedCheck,
  type UntypedHandler,
  type VerbatimAnswer,
  type Warning,
} from '../handler.ts'
import { compact, digestJson, isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import type { AnswerHead, StoredAnswer } from '../ledger/payment-record.ts'
import type { Refusal } from '../base/errors.ts'
import { hasContent, isSuccessStatus, type SuccessStatus } from '../base/success-status.ts'
import { inSpan, type Tracing } from '../base/tracing.ts'
import { limited, openController, within } from '../base/time-limit.ts'
import type { ExemptCaller } from './exempt-caller.ts'
import type { Delivery, OpenStream, Store } from './request.ts'
import { collect, openStream } from './stream.ts'

export type Preview = (body: JsonObject) => JsonObject

/** An operation with everything needed to run it, through any endpoint. */
export interface ServedOperation {
  readonly operation: Operation
  readonly handler: UntypedHandler
  readonly preview: Preview | undefined
  /** The check of a handler that is paid upfront. */
  readonly check: UntypedCheck | undefined
  /** What a handler does besides calls. */
  readonly background: UntypedBackground | undefined
  /** The store of a handler that writes. */
  readonly store: Store | undefined
  readonly readiness: Readiness
  /** Who sends a request, where they need not pay for it; undefined: nobody. */
  readonly exemptCallerOf: ((headers: IncomingHttpHeaders) => ExemptCaller | undefined) | undefined
}

/** By handler name, for handlers that call others. */
export type Operations = ReadonlyMap<string, ServedOperation>

/** Whether an operation can be run. */
export type Readiness = 'ready' | 'planned' | 'not_configured'

/**
 * Why an operation cannot be run, as every 402 of its route says; an error with a stack is created only where it is
 * thrown.
 */
export const UNREADY: Readonly<Record<Readiness, Refusal | undefined>> = {
  ready: undefined,
  planned: { code: 'not_implemented', detail: 'this route is announced and not served yet' },
  not_configured: { code: 'not_configured', detail: 'a source of this route has no credentials here' },
}

/**
 * Whether this endpoint sends its answer while it is produced, once it is paid. Tools do not: their results have one
 * piece. Nor does a metered stream: what it costs is known at its end.
 */
export function isStreaming({ kind, operation }: Endpoint): boolean {
  return kind !== 'tool' && operation.response.stream && operation.meter === undefined
}

export function unreadyFailure(readiness: Readiness): Failure | undefined {
  const unready = UNREADY[readiness]
  return unready === undefined ? undefined : new Failure(unready.code, unready.detail)
}

/** What a payment is bound to: one operation with its normalized arguments. */
export function scopeOf({ id }: Operation, digest: string): string {
  return `${id}:${digest}`
}

/** Equal for equal arguments, through any endpoint of the operation. */
export function digestArguments(operation: Operation, args: Arguments): string {
  const { url, headers = {} } = operation.upstream ?? {}
  const named: Record<string, Json> = {}
  for (const [name, value] of Object.entries(args))
    if (value !== undefined)
      named[name] = value instanceof Uint8Array ? { 'sha-256': hash('sha256', value, 'base64url') } : value
  return digestJson({
    handler: operation.handler,
    upstream: url ?? null,
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    arguments: named,
  })
}

/** Equal for equal requests of the handler: what an upstream answers depends on its credential and the accepted type too. */
function digestRequest(operation: Operation, args: Arguments): string {
  const digest = digestArguments(operation, args)
  const { upstream, response } = operation
  if (upstream === undefined) return digest
  const credential = compact({ ...upstream.credential })
  return digestJson({ digest, credential, accept: response.mediaType ?? null })
}

/** External dependencies of running handlers. */
export interface ExecutionDeps {
  readonly cache: Cache
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
  readonly tracing?: Tracing | undefined
}

/** Facts about the caller. */
export type CallIdentity = Pick<Context, 'payment' | 'signer'>

export const ANONYMOUS: CallIdentity = { payment: undefined, signer: undefined }

export interface HandlerRun {
  readonly operation: Operation
  readonly handler: UntypedHandler
  readonly args: Arguments
  readonly caller: CallIdentity
  /** Milliseconds that this caller can wait. */
  readonly timeLeft: number
  /** `never` for work that leaves something behind, which each payment needs separately. */
  readonly reuse: 'cached' | 'never'
  /** The operations that the handler may call. */
  readonly operations: Operations
}

/**
 * Runs one operation, through its cache when it has one. Rejects with `Failure('handler_timeout')` when the caller's
 * time is over; work that others share goes on for them until the operation's own timeout.
 */
export async function execute(deps: ExecutionDeps, work: HandlerRun): Promise<Served<Answer>> {
  const { operation, args, timeLeft } = work
  const began = deps.now()
  // Values that a handler caches for several answers may be older than its answer.
  const withOrigin = (served: Served<Answer>): Served<Answer> => ({
    ...served,
    cached: served.cached || served.at < began,
  })
  if (operation.cache === undefined || work.reuse === 'never') {
    const fetched = await run(deps, work, Math.min(operation.timeout, timeLeft), work.caller)
    return withOrigin({ ...fetched, cached: false, stale: false })
  }
  const key = `v2:${operation.handler}:${operation.form}:${digestRequest(operation, args)}`
  const shared = deps.cache.through(key, operation.cache, isKeptAnswer, async () => {
    const fetched = await run(deps, work, operation.timeout, ANONYMOUS)
    return { ...fetched, value: toKept(fetched.value) }
  })
  const served = await within(timeLeft, shared)
  return withOrigin({ ...served, value: fromKept(served.value) })
}

/** The JSON form in which a cache stores it: bytes as base64. */
type KeptAnswer = Answer | KeptBytes

interface KeptBytes extends Pick<VerbatimAnswer, 'usage'> {
  readonly content: Pick<VerbatimAnswer['content'], 'status' | 'type' | 'headers'> & {
    readonly base64: string
  }
}

function isKeptBytes(value: unknown): value is KeptBytes {
  if (!isJsonObject(value) || !isJsonObject(value['content'])) return false
  const { type, base64 } = value['content']
  return typeof type === 'string' && typeof base64 === 'string'
}

/** Whether a value has the form of an answer: a cached one may be from another version. */
function isAnswer(value: unknown): value is Answer {
  if (!isJsonObject(value)) return false
  const { content, source, body, warnings = [] } = value
  if (isJsonObject(content))
    return (
      typeof content['type'] === 'string' &&
      ('bytes' in content ? content['bytes'] instanceof Uint8Array : typeof content['text'] === 'string')
    )
  return Array.isArray(source) && Array.isArray(warnings) && isJsonObject(body)
}

function isKeptAnswer(value: unknown): value is KeptAnswer {
  return isKeptBytes(value) || isAnswer(value)
}

function toKept(answer: Answer): KeptAnswer {
  if (!('content' in answer) || !('bytes' in answer.content)) return answer
  const { bytes, ...content } = answer.content
  return { ...answer, content: { ...content, base64: Buffer.from(bytes).toString('base64') } }
}

function fromKept(kept: KeptAnswer): Answer {
  if (!isKeptBytes(kept)) return kept
  const { base64, ...content } = kept.content
  return { ...kept, content: { ...content, bytes: new Uint8Array(Buffer.from(base64, 'base64')) } }
}

/** One call of an operation, for one caller. */
export interface Call extends Omit<HandlerRun, 'operation' | 'handler' | 'reuse'> {
  readonly endpoint: Endpoint
  readonly served: ServedOperation
  /** Ignored parameters of the request, which the answer lists as warnings. */
  readonly ignored?: readonly IgnoredParameter[] | undefined
  /** Undefined: whole. */
  readonly delivery?: Delivery
}

/** Runs an operation, and wraps its result in the form that is sold and stored. */
export async function invoke(deps: ExecutionDeps, call: Call): Promise<StoredAnswer | OpenStream> {
  return (await perform(deps, call)).answer
}

/** An answer with what its price may depend on. */
export interface Performed {
  readonly answer: StoredAnswer | OpenStream
  /** What the handler has returned under `usage`. */
  readonly usage?: unknown
}

/** Like `invoke`, for a price that is known after the work. */
export async function perform(deps: ExecutionDeps, call: Call): Promise<Performed> {
  const { endpoint, served, ignored, delivery = 'whole', ...rest } = call
  const { operation, handler, preview, store } = served
  if (operation.response.stream) {
    const began = deps.now()
    const inPieces = endpoint.kind !== 'tool' && delivery !== 'whole'
    const end = inPieces ? delivery.until : Infinity
    const stream = await open(deps, { ...rest, operation, handler, reuse: 'never' }, end)
    if (inPieces || isStreaming(endpoint)) return { answer: stream }
    const left = Math.min(operation.timeout, rest.timeLeft) - (deps.now() - began)
    return { answer: await collect(stream, left) }
  }
  // An answer for a signed-in caller is private.
  const reuse = store === undefined && rest.caller.signer === undefined ? 'cached' : 'never'
  const result = await execute(deps, { ...rest, operation, handler, reuse })
  return { answer: wrapResponse(endpoint, result, preview, deps.now(), ignored), usage: result.value.usage }
}

/** Starts a handler whose answer is a stream. */
async function open(
  deps: ExecutionDeps,
  { operation, handler, args, caller, timeLeft, operations }: HandlerRun,
  end: number,
): Promise<OpenStream> {
  const { response, timeout } = operation
  const controller = openController()
  const most = Math.min(timeout, timeLeft)
  const context = contextOf(deps, operations, { signal: controller.signal, timeout: most, ...caller })
  try {
    const answer = await within(
      most,
      called(operation, () => handler(args, context)),
    )
    if (!isStream(answer))
      throw new TypeError('the handler returned no stream: { content: { type, stream } } is expected')
    const { stream, status = 200 } = answer.content
    if (!hasContent(status)) throw new TypeError(`a stream has content, and status ${status} has none`)
    const limits = { maxSize: response.maxSize, patience: timeout, end, now: deps.now }
    return openStream(headOf(answer.content, response), stream, limits, controller)
  } catch (fault) {
    controller.abort()
    throw fault
  }
}

/** Runs the check of a handler before the payment: rejects when the work would fail at every run. */
export async function preflightCall(
  deps: ExecutionDeps,
  { served: { operation }, operations, args, timeLeft }: Omit<Call, 'endpoint' | 'caller'>,
  check: UntypedCheck,
): Promise<void> {
  const timeout = Math.min(operation.timeout, timeLeft)
  await limited(timeout, (signal) =>
    called(operation, () => check(args, contextOf(deps, operations, { signal, timeout, ...ANONYMOUS }))),
  )
}

/**
 * What the handlers of these operations do besides calls. A source that fails is seen where sources are counted;
 * anything else that is thrown goes to `report`.
 */
export async function runInBackground(
  deps: ExecutionDeps,
  operations: Operations,
  report: (fault: unknown) => void,
): Promise<void> {
  const ready = [...operations.values()].filter(({ readiness }) => readiness === 'ready')
  await Promise.all(
    ready.map(async ({ operation: { timeout }, background }) => {
      if (background === undefined) return
      try {
        await limited(timeout, (signal) =>
          background(contextOf(deps, operations, { signal, timeout, ...ANONYMOUS })),
        )
      } catch (fault) {
        if (!(fault instanceof Failure)) report(fault)
      }
    }),
  )
}

const NO_ANSWER = 'the handler returned no answer: { source: [{ name }], body: { … } } is expected'

async function run(
  deps: ExecutionDeps,
  { operation, handler, args, operations }: HandlerRun,
  timeout: number,
  caller: CallIdentity,
): Promise<Fetched<Answer>> {
  const { now } = deps
  const answer = await inSpan(deps.tracing, 'handler', { 'ratecard.operation': operation.id }, () =>
    limited(timeout, (signal) =>
      called(operation, () => handler(args, contextOf(deps, operations, { signal, timeout, ...caller }))),
    ),
  )
  // A JavaScript handler can return anything: an answer without its content must not be sold.
  if (!isJsonObject(answer)) throw new TypeError(NO_ANSWER)
  if (isStream(answer)) throw new TypeError('only routes with "response.stream" answer with a stream')
  if ('content' in answer) return { value: answer, at: now() }
  if (!isAnswer(answer)) throw new TypeError(NO_ANSWER)
  const { fetchedAt, freshFor, ...value } = answer
  const at = fetchedAt?.getTime() ?? now()
  return freshFor === undefined ? { value, at } : { value, at, freshFor }
}

/** Runs code of the operator, and marks the failures that it throws: those of a proxied API are in our own words. */
async function called<T>({ upstream }: Operation, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (fault) {
    throw fault instanceof Failure && upstream === undefined ? new HandlerFailure(fault) : fault
  }
}

function isStream(answer: Answer | StreamAnswer): answer is StreamAnswer {
  return 'content' in answer && 'stream' in answer.content
}

interface Occasion extends CallIdentity, Pick<Context, 'signal'> {
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
  if (store !== undefined || operation.method !== 'GET')
    throw new Error(`${name} has effects: it is for those who pay for it`)
  if (operation.response.stream) throw new Error(`${name} answers with a stream, which has no parts`)
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

/** The answer as it is sent: the endpoint's own members in the service's envelope, or a text unchanged. */
export function wrapResponse(
  endpoint: Endpoint,
  served: Served<Answer>,
  preview: Preview | undefined,
  now: number,
  ignored: readonly IgnoredParameter[] = [],
): StoredAnswer {
  const { value: answer, stale } = served
  const at = new Date(served.at)
  const { maxSize } = endpoint.operation.response
  if ('content' in answer) {
    const { content } = answer
    const head = headOf(content, endpoint.operation.response)
    return 'bytes' in content
      ? sized({ kind: 'bytes', ...head, bytes: content.bytes }, content.bytes.length, maxSize)
      : sized({ kind: 'text', ...head, text: content.text }, Buffer.byteLength(content.text), maxSize)
  }
  const sample = endpoint.kind === 'sample' ? endpoint : undefined
  const body = sample !== undefined && preview !== undefined ? preview(answer.body) : answer.body
  const older = stale ? [staleWarning(at, new Date(now))] : []
  const warnings = [...ignored.map(ignoredWarning), ...(answer.warnings ?? []), ...older]
  const value: JsonObject = {
    endpoint: endpoint.path,
    source: answer.source.map((source) => compact({ ...source })),
    fetched_at: at.toISOString(),
    cached: served.cached,
    cache_ttl_seconds: Math.round((endpoint.operation.cache?.ttl ?? 0) / 1000),
    warnings: warnings.map((warning) => compact({ ...warning })),
    ...body,
    ...(sample === undefined ? {} : previewMembers(sample, body !== answer.body)),
  }
  const { status } = statusOf(answer.status)
  if (status !== undefined && !hasContent(status))
    throw new TypeError(`an answer with status ${status} has no body: { content: { … } } is expected`)
  const stored: StoredAnswer = { kind: 'json', value, ...(status && { status }) }
  return sized(stored, Buffer.byteLength(JSON.stringify(value)), maxSize)
}

/** How an answer without an envelope is sent. */
function headOf({ status, type, headers }: ContentHead, response: Response): AnswerHead {
  const listed = status === 201 || status === 202 ? [...response.headers, 'location'] : response.headers
  return { type, ...passedOn(headers, listed), ...statusOf(status) }
}

/** A JavaScript handler can return any status; 200 is the one of records without a status. */
function statusOf(status: SuccessStatus = 200): { readonly status?: SuccessStatus } {
  if (!isSuccessStatus(status))
    throw new TypeError(`${String(status)} is no status of an answer: throw a Failure`)
  return status === 200 ? {} : { status }
}

/** The headers that the catalog lists; with 201 and 202 also where the result is. */
function passedOn(
  given: Readonly<Record<string, string>> = {},
  headers: readonly string[],
): { readonly headers?: Readonly<Record<string, string>> } {
  const named = new Set(headers.map((name) => name.toLowerCase()))
  const passed = Object.entries(given).filter(([name]) => named.has(name.toLowerCase()))
  return passed.length === 0 ? {} : { headers: Object.fromEntries(passed) }
}

function ignoredWarning({ name, suggestion }: IgnoredParameter): Warning {
  const guess = suggestion === undefined ? '' : `; did you mean '${suggestion}'?`
  return {
    code: 'parameter_ignored',
    message: `this route has no parameter '${name}': it was ignored${guess}`,
  }
}

function previewMembers(route: Route, cut: boolean): JsonObject {
  const { price, meter } = route.operation
  const truncated = cut || route.bindings.some(({ kind }) => kind === 'fixed')
  const full =
    price === undefined || route.full === undefined
      ? {}
      : { full: { path: route.full, price: { ...priceMembers(price, meter), currency: 'USD' } } }
  return { preview: true, truncated, ...full }
}

function sized(answer: StoredAnswer, bytes: number, most: number): StoredAnswer {
  if (bytes <= most) return answer
  throw new Failure('answer_too_large', `the answer is larger than ${most / 1_000_000} MB`)
}
