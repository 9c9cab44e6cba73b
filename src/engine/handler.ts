import type { Json, JsonObject } from './json.ts'

/** Where an answer's data comes from, as the buyer sees it. */
export interface Source {
  readonly name: string
  readonly url?: string
  readonly licence?: string
  readonly version?: string
  readonly published_at?: string
}

/** Something the buyer should know about an answer that was given all the same. */
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
}

/** An answer that is passed on as it is, without an envelope. */
export interface VerbatimAnswer {
  readonly content: { readonly type: string; readonly text: string }
}

export type Answer = EnvelopedAnswer | VerbatimAnswer

/** What is known of the payment while the handler runs; the transaction comes later, in the receipt. */
export interface PaymentFacts {
  /** Public id of the payment: the same whenever the work is done again for it. */
  readonly id: string
  readonly protocol: string
  readonly network: string
  readonly payer: string
}

/** What a handler may use besides its parameters. */
export interface Context {
  /** Aborted at the deadline of the request: hand it to everything that waits. */
  readonly signal: AbortSignal
  readonly now: () => Date
  /** Cryptographically random bytes. */
  readonly random: (bytes: number) => Uint8Array
  /** Only on paid calls of operations without a cache: a cached answer belongs to no payment. */
  readonly payment: PaymentFacts | undefined
}

/**
 * The work of one operation: parameters in (checked and complete), an answer out, or a throw of `Failure` or
 * `InvalidParameter`; nothing is charged for a throw.
 *
 * @example
 * const shout: Handler<{ readonly text: string }> = async ({ text }) => ({
 *   source: [{ name: 'computed' }],
 *   body: { text: text.toUpperCase() },
 * })
 */
export type Handler<Parameters> = (parameters: Parameters, context: Context) => Promise<Answer>

/** A handler with a smaller face: `preview` cuts the full body down to what the free sample shows. */
export interface HandlerWithPreview<Parameters> {
  readonly run: Handler<Parameters>
  readonly preview: (body: JsonObject) => JsonObject
}

/**
 * A handler that stores something. What `prepare` stores under `context.payment.id` is not to be seen before `commit`,
 * which comes once the payment has settled; `abort` comes when it never will. All three may be called again for the same
 * payment, `commit` and `abort` also by another process and for a payment nothing was prepared for.
 */
export interface StoringHandler<Parameters> {
  readonly prepare: Handler<Parameters>
  readonly commit: (payment: string) => Promise<void>
  readonly abort: (payment: string) => Promise<void>
}

/** Handlers by name, checked at compile time against the generated `Parameters` of a catalog. */
export type Handlers<Catalogued> = {
  readonly [Name in keyof Catalogued]:
    Handler<Catalogued[Name]> | HandlerWithPreview<Catalogued[Name]> | StoringHandler<Catalogued[Name]>
}

/**
 * Handlers whose parameters are known only at run time. Written as methods because the compiler then compares their
 * parameters both ways: the catalog's own check has already shown that the arguments fit.
 */
interface Untyped {
  handler(parameters: Arguments, context: Context): Promise<Answer>
}
export type UntypedHandler = Untyped['handler']
export interface UntypedHandlerWithPreview {
  readonly run: UntypedHandler
  readonly preview: (body: JsonObject) => JsonObject
}
export interface UntypedStoringHandler {
  readonly prepare: UntypedHandler
  readonly commit: (payment: string) => Promise<void>
  readonly abort: (payment: string) => Promise<void>
}
export type HandlerMap = Readonly<
  Record<string, UntypedHandler | UntypedHandlerWithPreview | UntypedStoringHandler>
>

/** Parameters after validation: the kinds the catalog can declare. */
export type Argument = string | number | boolean | readonly string[] | readonly number[]
export type Arguments = Readonly<Record<string, Argument | undefined>>

export type { Json, JsonObject }
