import { canonicalJson, digestJson, isJsonObject, type Json, type JsonObject } from './base/json.ts'
import type { SuccessStatus } from './base/success-status.ts'

export { isAddress } from './base/address.ts'
export { Failure, InvalidParameter, type ErrorCode, type FailureOptions } from './base/errors.ts'
export { canonicalJson, digestJson, isJsonObject }
export type { SuccessStatus }

/** The origin of an answer's data, as the buyer sees it. */
export interface Source {
  readonly name: string
  readonly url?: string
  readonly licence?: string
  readonly version?: string
  readonly published_at?: string
}

/** Something the buyer should know about an answer. */
export interface Warning {
  readonly code: string
  readonly message: string
  readonly source?: string
}

/** An answer in the service's envelope: `body` holds the endpoint's own fields, snake_case, at the top level. */
export interface EnvelopedAnswer {
  readonly source: readonly Source[]
  readonly body: JsonObject
  readonly warnings?: readonly Warning[]
  /** Status of the HTTP response; default: 200. A status without content (204, 205) needs a `content`. */
  readonly status?: SuccessStatus
  /** What the call has used, by name: for a price with `usage_of`. */
  readonly usage?: Readonly<Record<string, number>>
  /** When the sources returned the data; default: when the answer was made. The cache counts from then. */
  readonly fetchedAt?: Date
  /**
   * Milliseconds from `fetchedAt` for which the answer is fresh, if fewer than in the catalog: for an answer with parts
   * that are missing now.
   */
  readonly freshFor?: number
}

/** An answer that is passed on as it is, without an envelope, and redelivered byte for byte. */
export interface VerbatimAnswer {
  readonly content: ContentHead & Content
  /** What the call has used, by name: for a price with `usage_of`. */
  readonly usage?: Readonly<Record<string, number>>
}

export interface ContentHead {
  /** Media type, with its parameters. */
  readonly type: string
  /** Status of the HTTP response; default: 200. With 204 and 205 nothing of the content is sent. */
  readonly status?: SuccessStatus
  /** Response headers besides the media type: those the catalog names under `response.headers`. */
  readonly headers?: Readonly<Record<string, string>>
}

export type Content = { readonly text: string } | { readonly bytes: Uint8Array }

export type Answer = EnvelopedAnswer | VerbatimAnswer

/**
 * The answer of a route with `response.stream`, which is sent while it is made and redelivered byte for byte. A web
 * `ReadableStream` and a Node.js `Readable` are such iterables, too. Nothing is read before the payment has settled; a
 * stream that throws is broken off, and the handler runs again for the same payment.
 */
export interface StreamAnswer {
  readonly content: ContentHead & {
    /** Text or bytes: one event, line or chunk at a time, with its separator. */
    readonly stream: AsyncIterable<string | Uint8Array>
  }
}

/** What is known of the payment while the handler runs; the transaction comes later, in the receipt. */
export interface PaymentFacts {
  /** Public id of the payment, the same whenever the work is done again for it: use it as the idempotency key. */
  readonly id: string
  readonly protocol: string
  readonly network: string
  /** EIP-55. */
  readonly payer: string
  /** The signer: a key, whose address is the same account on every EVM network, or a contract wallet. */
  readonly account: 'key' | 'contract'
}

/** An answer of another operation, as its own route would give it. */
export interface Part {
  readonly answer: EnvelopedAnswer
  /** When its sources gave it. */
  readonly at: Date
  readonly cached: boolean
  /** Whether its source failed now and this is an older answer: tell the buyer with `staleWarning`. */
  readonly stale: boolean
}

/** How long something is kept, in milliseconds. */
export interface Keeping {
  readonly ttl: number
  /** The time after `ttl` in which it is still given when it cannot be fetched again. */
  readonly staleIfError: number
}

export interface KeptValue<Value> {
  readonly value: Value
  readonly at: Date
  readonly stale: boolean
}

/** What a handler may use besides its parameters. */
export interface Context {
  /** Aborted at the deadline of the request, or when a stream is broken off: hand it to everything that waits. */
  readonly signal: AbortSignal
  readonly now: () => Date
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  /** Only on paid calls of operations without a cache: a cached answer belongs to no payment. */
  readonly payment: PaymentFacts | undefined
  /** EIP-55 address that has signed in with this very call (sign-in-with-x); undefined on paid calls and without proof. */
  readonly signer: string | undefined
  /**
   * Asks another operation of the catalog by the name of its handler, through the cache of that operation: equal
   * requests of other callers share the answer. Parameters that are left out have their defaults. Rejects as that
   * handler does, with `not_configured` when its sources have no credentials, and with `not_implemented` when the
   * catalog does not have it.
   *
   * @example
   * import type { Handler } from 'ratecard/handler'
   *
   * export const digest: Handler<{ readonly country: string }> = async ({ country }, { ask }) => {
   *   const { answer, stale } = await ask('top-sellers', { country })
   *   return { source: answer.source, body: { top: answer.body['games'] ?? [], stale } }
   * }
   */
  readonly ask: (handler: string, parameters: Arguments) => Promise<Part>
  /**
   * Keeps a value from which several answers are made, such as a pool or a history, in the cache of the answers. One
   * `produce` serves all callers that need the value at the same time, in every process, within the timeout of this
   * operation. `name` is unique in the service: give a value of another form another name. The value must be JSON, and
   * `isValue` checks a kept one. `produce` gets the previous value as long as that is kept, so that a history can grow
   * from it.
   *
   * @example
   * import type { Handler } from 'ratecard/handler'
   *
   * const isRates = (value: unknown): value is { readonly eur: number } =>
   *   typeof value === 'object' && value !== null && 'eur' in value && typeof value.eur === 'number'
   *
   * export const rate: Handler<{}> = async (_, { keep }) => {
   *   const keeping = { ttl: 60_000, staleIfError: 3_600_000 }
   *   const { value } = await keep('rates', keeping, isRates, async (signal) => {
   *     const response = await fetch('https://rates.example.com', { signal })
   *     return JSON.parse(await response.text())
   *   })
   *   return { source: [{ name: 'rates.example.com' }], body: { eur: value.eur } }
   * }
   */
  readonly keep: <Value>(
    name: string,
    keeping: Keeping,
    isValue: (value: unknown) => value is Value,
    produce: (signal: AbortSignal, previous?: Value) => Promise<Value>,
  ) => Promise<KeptValue<Value>>
}

/**
 * The warning of an answer that contains an older value because its source does not answer: from when the value is, and
 * how old.
 *
 * @example
 * import { staleWarning } from 'ratecard/handler'
 *
 * const warnings = [staleWarning(new Date('2026-11-22T12:00:00Z'), new Date(), 'rates.example.com')]
 * console.log(warnings)
 */
export function staleWarning(at: Date, now: Date, source?: string): Warning {
  const seconds = Math.max(0, Math.round((now.getTime() - at.getTime()) / 1000))
  const age = seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`
  const message = `the source does not answer now; this is what it said ${age} ago, at ${at.toISOString()}`
  return { code: 'stale', message, ...(source === undefined ? {} : { source }) }
}

/**
 * The work of one operation: parameters in (checked and complete), an answer out, or a throw of `Failure` or
 * `InvalidParameter`; nothing is charged for a throw.
 *
 * @example
 * import type { Handler } from 'ratecard/handler'
 *
 * export const shout: Handler<{ readonly text: string }> = async ({ text }) => ({
 *   source: [{ name: 'computed' }],
 *   body: { text: text.toUpperCase() },
 * })
 */
export type Handler<Parameters> = (parameters: Parameters, context: Context) => Promise<Answer>

/**
 * A handler with a sample: `preview` cuts the full body down to what the free sample shows.
 *
 * @example
 * import type { HandlerWithPreview } from 'ratecard/handler'
 *
 * export const list: HandlerWithPreview<{}> = {
 *   run: async () => ({ source: [], body: { items: [1, 2, 3, 4] } }),
 *   preview: ({ items }) => ({ items: Array.isArray(items) ? items.slice(0, 1) : [] }),
 * }
 */
export interface HandlerWithPreview<Parameters> {
  readonly run: Handler<Parameters>
  readonly preview: (body: JsonObject) => JsonObject
  /**
   * For a handler that is paid upfront: throws as the work would if it can already tell that it will fail, and
   * nothing is charged. Values it gets through `ask` and `keep` are not fetched again for the work.
   */
  readonly check?: (parameters: Parameters, context: Context) => Promise<void>
  /**
   * Called every minute while the operation can be run, for what has to exist before the first call, such as a history
   * that grows: `keep` makes it rarer, and fetches once for all processes.
   */
  readonly background?: (context: Context) => Promise<void>
  /** False: a setting it needs is missing here; the operation is answered `not_configured`, and no tool is listed for it. */
  readonly configured?: boolean
}

/** A handler that needs a setting the catalog's `sources` cannot name, such as one of several providers. */
export interface ConfigurableHandler<Parameters> {
  readonly run: Handler<Parameters>
  /** As `configured` of a handler with a preview. */
  readonly configured: boolean
  readonly check?: (parameters: Parameters, context: Context) => Promise<void>
}

/**
 * A handler that stores something. What `prepare` stores under `context.payment.id` is not visible before `commit`,
 * which comes once the payment has settled; `abort` comes when it never will. All three may be called again for the same
 * payment, `commit` and `abort` also by another process and for a payment nothing was prepared for.
 *
 * @example
 * import type { StoringHandler } from 'ratecard/handler'
 *
 * const [prepared, notes] = [new Map<string, string>(), new Map<string, string>()]
 * export const note: StoringHandler<{ readonly text: string }> = {
 *   prepare: async ({ text }, { payment }) => {
 *     if (payment !== undefined) prepared.set(payment.id, text)
 *     return { source: [], body: { stored: true } }
 *   },
 *   commit: async (id) => {
 *     notes.set(id, prepared.get(id) ?? '')
 *   },
 *   abort: async (id) => {
 *     prepared.delete(id)
 *   },
 * }
 */
export interface StoringHandler<Parameters> {
  readonly prepare: Handler<Parameters>
  readonly commit: (payment: string) => Promise<void>
  readonly abort: (payment: string) => Promise<void>
  /** As `configured` of a handler with a preview. */
  readonly configured?: boolean
}

/**
 * The work of an operation with `response.stream`: rejects before the first byte as any handler does, uncharged.
 *
 * @example
 * import type { StreamHandler } from 'ratecard/handler'
 *
 * export const count: StreamHandler<{ readonly to: number }> = async ({ to }) => ({
 *   content: {
 *     type: 'text/event-stream',
 *     stream: (async function* () {
 *       for (let n = 1; n <= to; n += 1) yield `data: ${n}\n\n`
 *     })(),
 *   },
 * })
 */
export type StreamHandler<Parameters> = (parameters: Parameters, context: Context) => Promise<StreamAnswer>

/**
 * Handlers by name, checked at compile time against the generated `Parameters` of a catalog; `Streams` are the names of
 * those whose answers are streams.
 */
export type Handlers<Catalogued, Streams extends keyof Catalogued = never> = {
  readonly [Name in keyof Catalogued]: Name extends Streams
    ? StreamHandler<Catalogued[Name]>
    : | Handler<Catalogued[Name]>
      | HandlerWithPreview<Catalogued[Name]>
      | ConfigurableHandler<Catalogued[Name]>
      | StoringHandler<Catalogued[Name]>
}

/**
 * Handlers with parameters that are known only at run time. Written as methods, because the compiler then compares
 * their parameters in both directions: the check of the catalog has shown that the arguments fit.
 */
interface Untyped {
  handler(parameters: Arguments, context: Context): Promise<Answer | StreamAnswer>
  check(parameters: Arguments, context: Context): Promise<void>
  background(context: Context): Promise<void>
}
export type UntypedHandler = Untyped['handler']
export type UntypedCheck = Untyped['check']
export type UntypedBackground = Untyped['background']
export interface UntypedHandlerObject {
  readonly run: UntypedHandler
  readonly preview?: (body: JsonObject) => JsonObject
  readonly check?: UntypedCheck
  readonly background?: UntypedBackground
  readonly configured?: boolean
}
export interface UntypedStoringHandler {
  readonly prepare: UntypedHandler
  readonly commit: (payment: string) => Promise<void>
  readonly abort: (payment: string) => Promise<void>
  readonly configured?: boolean
}
export type HandlerMap = Readonly<
  Record<string, UntypedHandler | UntypedHandlerObject | UntypedStoringHandler>
>

/** Parameters after validation, and the body of a request: JSON, text, or bytes. */
export type Argument = Json | Uint8Array
export type Arguments = Readonly<Record<string, Argument | undefined>>

export type { Json, JsonObject }
