import { UNPAID_BYTES } from '../catalog/body.ts'
import { examplePath, type Operation, type Route } from '../catalog/catalog.ts'
import { type Quote, quoteLowest } from '../catalog/price/price.ts'
import { quoteMembers } from '../catalog/price/text.ts'
import type { ValidationError } from '../catalog/validation-error.ts'
import type { IgnoredParameter, RawParameters, Validated, Validator } from '../catalog/validator.ts'
import { chargingOf, isUpfront } from '../documents/operation-view.ts'
import { ERRORS, type CorrectedOffer, type ErrorCode } from '../base/errors.ts'
import { asciiJson, compact, digestJson, type Json, type JsonObject } from '../base/json.ts'
import { formatShort, type Micros } from '../base/money.ts'
import type { Challenge } from '../payment/challenge.ts'
import { digestArguments, scopeOf, UNREADY, type Readiness } from '../purchase/execution.ts'
import { quoteCall } from '../purchase/purchase.ts'
import { problemMembers } from '../purchase/problem.ts'
import type { Received } from './body-reader.ts'
import { PROBLEM_TYPE, type Reply } from './reply.ts'

/** Answers 402 for one route. */
export type PaymentRequired = (preflight: Preflight, reason: Reason) => Reply

/** Why a payment is asked for. */
export interface Reason {
  readonly code: ErrorCode
  readonly detail: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly reoffer?: CorrectedOffer | undefined
}

/** The reason of a request that carries no payment. */
export const UNPAID: Reason = {
  code: 'payment_required',
  detail: 'send the request again with a payment for one of these offers',
}

/** The same of a request that would fail even with a payment. */
const UNREPAIRED: Reason = {
  ...UNPAID,
  detail: 'this request would fail: repair it as would_fail says before you pay',
}

/** What scripts of other origins read of a 402: fewer names than elsewhere, since its headers have to stay small. */
const EXPOSED = {
  'Access-Control-Expose-Headers':
    'PAYMENT-REQUIRED, PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt, Ratecard-Sandbox',
}

export interface PaymentRequiredSettings {
  readonly baseUrl: string
  /** Path of a document that explains the route and contains programs that pay for it. */
  readonly docs: string
  /** Whether the money is worthless. */
  readonly testnet: boolean
  /** Two or three words for what is sold. */
  readonly title: string
  /** An answer; undefined when the catalog shows none. */
  readonly example: Json | undefined
}

/**
 * Compiles the 402 of a route from the challenges of every protocol it can be paid with. What is the same for all
 * requests is serialised once.
 */
export function compilePaymentRequired(
  route: Route,
  challengesOf: (amount: Micros) => ReadonlyMap<string, Challenge>,
  settings: PaymentRequiredSettings,
): PaymentRequired {
  const wordsOf = (reason: Reason, quote: Quote | undefined): string =>
    asciiJson({ ...problemOf(reason), ...forReaders(route, quote, settings) }).slice(1, -1)
  const unpaidOf = (quote: Quote | undefined): string =>
    wordsOf({ ...UNPAID, detail: spellOffer(route, quote, settings) }, quote)
  const unrepairedOf = (quote: Quote | undefined): string => wordsOf(UNREPAIRED, quote)
  const { price } = route.operation
  const fixed = typeof price === 'bigint' ? { amount: price } : undefined
  const unpaid = fixed && unpaidOf(fixed)
  const unrepaired = fixed && unrepairedOf(fixed)
  const textOf = ({ quote, wouldFail }: Preflight, reason: Reason): string => {
    if (reason !== UNPAID) return wordsOf(reason, quote)
    return wouldFail === undefined ? (unpaid ?? unpaidOf(quote)) : (unrepaired ?? unrepairedOf(quote))
  }
  const shown = shownExample(settings)
  return (preflight, reason) => {
    const { resource, scope, contentDigest, quote, wouldFail, ignored } = preflight
    const { code, headers, reoffer } = reason
    const exposed = reason === UNPAID ? EXPOSED : {}
    const all: Record<string, string> = {
      'Content-Type': PROBLEM_TYPE,
      'Cache-Control': 'no-store',
      ...exposed,
      ...headers,
    }
    let body = wouldFail === undefined ? '{' : `{"would_fail":${wouldFail},`
    if (quote !== undefined)
      for (const challenge of challengesOf(quote.amount).values()) {
        const issued = challenge.issue({ resource, scope, contentDigest, error: code, reoffer })
        Object.assign(all, issued.headers)
        body += `${issued.members},`
      }
    body += textOf(preflight, reason)
    if (ignored !== undefined) body += `,"ignored_parameters":${ignored}`
    if (reason === UNPAID) body += shown
    return { status: 402, headers: all, body: `${body}}`, vary: 'Accept', code }
  }
}

/** An unpaid request gets no hint: the detail says what to do. */
function problemOf(reason: Reason): JsonObject {
  const { hint, ...problem } = problemMembers(reason.code, reason.detail, 'no')
  return compact({ ...problem, hint: reason.code === UNPAID.code ? undefined : hint })
}

/** What a call costs and what to do, as one sentence. */
function spellOffer(
  { operation: { price, meter }, sample }: Route,
  quote: Quote | undefined,
  { title }: PaymentRequiredSettings,
): string {
  if (quote === undefined) return UNPAID.detail
  // The parts of a computed price are known when its arguments are.
  const isLeast = typeof price === 'object' && quote.parts === undefined
  const trial = sample === undefined ? '' : ', or try the free sample'
  if (meter !== undefined) {
    const most = `$${formatShort(quote.amount)}`
    return `${title} costs what the call uses, at most ${most}${isLeast ? ' or more' : ''}: ${UNPAID.detail}${trial}. ${METERED_NEED}`
  }
  return `${title} costs $${formatShort(quote.amount)}${isLeast ? ' or more' : ''}: ${UNPAID.detail}${trial}.`
}

const METERED_NEED =
  'You authorize the most, and are charged at most that; this needs a client with a scheme of these offers, "exact" alone is not enough.'

/** The example as the last member; a longer one is on the page that `docs` links to. */
function shownExample({ example }: PaymentRequiredSettings): string {
  const text = example === undefined ? '' : asciiJson(example)
  return text === '' || text.length > LONGEST_EXAMPLE ? '' : `,"example":${text}`
}

const LONGEST_EXAMPLE = 4_096

function forReaders(
  route: Route,
  quote: Quote | undefined,
  { baseUrl, docs, testnet }: PaymentRequiredSettings,
): JsonObject {
  const { operation, sample } = route
  return {
    ...(operation.price === undefined || quote === undefined
      ? {}
      : { price: quoteMembers(operation.price, quote, operation.meter) }),
    ...(sample === undefined ? {} : { sample: baseUrl + sample }),
    docs: baseUrl + docs,
    ...(testnet ? { testnet } : {}),
    ...(isUpfront(route) ? { charging: chargingOf(route) } : {}),
    ...(operation.deprecated ? { deprecated: true } : {}),
  }
}

/** What a 402 says about the request itself. */
export interface Preflight {
  /** Operation and arguments as a digest: what a payment can be bound to; `none` when the arguments are not valid. */
  readonly scope: string
  /** RFC 9530 digest of the body, where it was read whole. */
  readonly contentDigest: string | undefined
  /** The smallest price where the arguments are not valid, or not known. */
  readonly quote: Quote | undefined
  /** `{status, code, detail}` as JSON when the request would fail even if it were paid for. */
  readonly wouldFail: string | undefined
  /** The same for figures: the code, and of arguments the name of a declared parameter and what is wrong with it. */
  readonly wouldFailReason?: string | undefined
  /** Query parameters that the route does not have, as JSON; undefined when there are none. */
  readonly ignored: string | undefined
  /** Absolute URL of what is offered. */
  readonly resource: string
}

interface Asked {
  readonly served: { readonly route: Route; readonly validate: Validator; readonly readiness: Readiness }
  readonly parameters: RawParameters
  /** Absolute URL of the concrete path. */
  readonly resource: string
  readonly received?: Received
}

/** Bounds what is kept, whatever is asked. */
const KEPT = 1_000
const LONGEST = 256

/**
 * The preflights of requests, each computed once: crawlers and buyers ask before they pay what others have asked, and
 * within one revision the result is the same. The oldest is forgotten first.
 */
export class Preflights {
  readonly #baseUrl: string
  readonly #known = new Map<string, Preflight>()

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl
  }

  of(asked: Asked): Preflight {
    if (asked.served.route.operation.body !== undefined) return preflightOfBody(asked, this.#baseUrl)
    const { method } = asked.served.route.operation
    const url = `${asked.resource}?${asked.parameters.query}`
    const key = method === 'GET' ? url : `${method} ${url}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const preflight = preflightOf(asked, this.#baseUrl)
    if (key.length > LONGEST) return preflight
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < KEPT) break
      this.#known.delete(oldest)
    }
    this.#known.set(key, preflight)
    return preflight
  }
}

/** Bodies differ from one request to the next: nothing of these preflights is kept. */
function preflightOfBody(asked: Asked, baseUrl: string): Preflight {
  const { received, parameters, resource, served } = asked
  if (received?.kind === 'body') {
    const preflight = preflightOf({ ...asked, parameters: { ...parameters, body: received.value } }, baseUrl)
    return preflight.scope === 'none' ? preflight : { ...preflight, ...bodyTerms(asked, received) }
  }
  const refusal = UNREADY[served.readiness] ?? (received?.kind === 'fault' ? received.refusal : undefined)
  const wouldFail =
    refusal === undefined ? undefined : asciiJson({ status: ERRORS[refusal.code].status, ...refusal })
  const scope = received?.kind === 'fault' ? 'none' : unreadScope(asked)
  const quote = lowestOf(served.route.operation)
  const wouldFailReason = refusal?.code
  return { scope, contentDigest: undefined, quote, resource, ignored: undefined, wouldFail, wouldFailReason }
}

/**
 * What a payment for a request with a body is bound to: the digest of the body; where the body is too large to be read
 * unpaid, also the URL in place of the arguments.
 */
export function bodyTerms(
  asked: Pick<Asked, 'served' | 'parameters'>,
  { size, digest }: Extract<Received, { readonly kind: 'body' }>,
): { readonly scope?: string; readonly contentDigest: string } {
  const bound = { contentDigest: digest }
  return size > UNPAID_BYTES ? { scope: unreadScope(asked), ...bound } : bound
}

function unreadScope({ served, parameters: { path, query } }: Pick<Asked, 'served' | 'parameters'>): string {
  return scopeOf(served.route.operation, digestJson({ path, query }))
}

function preflightOf(asked: Asked, baseUrl: string): Preflight {
  const { route, validate, readiness } = asked.served
  const validated = validate(asked.parameters)
  const resource = resourceOf(asked, validated, baseUrl)
  const { operation } = route
  const { price } = operation
  const common = {
    contentDigest: undefined,
    resource,
    wouldFail: failureOf(readiness, validated),
    wouldFailReason: reasonOf(asked, validated),
  }
  if (validated.kind === 'invalid')
    return { ...common, scope: 'none', quote: lowestOf(operation), ignored: undefined }
  const scope = scopeOf(operation, digestArguments(operation, validated.args))
  const quote = price === undefined ? undefined : quoteCall(operation, validated.args)
  return { ...common, scope, quote, ignored: ignoredOf(validated.ignored) }
}

function failureOf(readiness: Readiness, validated: Validated): string | undefined {
  const unready = UNREADY[readiness]
  if (unready !== undefined) return asciiJson({ status: ERRORS[unready.code].status, ...unready })
  if (validated.kind === 'valid') return undefined
  const detail: Json = validated.errors.map(asJson)
  return asciiJson({ status: 422, code: 'parameters_invalid', detail })
}

function reasonOf({ served }: Asked, validated: Validated): string | undefined {
  const unready = UNREADY[served.readiness]
  if (unready !== undefined) return unready.code
  if (validated.kind === 'valid') return undefined
  const [first] = validated.errors
  const name = String(first?.loc[1] ?? first?.loc[0] ?? '')
  // Callers choose the names of other parameters.
  const isDeclared = name === 'body' || served.route.parameters.some((parameter) => parameter.name === name)
  return isDeclared && first !== undefined
    ? `parameters_invalid: ${name} (${first.type})`
    : 'parameters_invalid'
}

function lowestOf({ price }: Operation): Quote | undefined {
  return price === undefined ? undefined : quoteLowest(price)
}

function ignoredOf(ignored: readonly IgnoredParameter[] | undefined): string | undefined {
  if (ignored === undefined) return undefined
  return asciiJson(ignored.map(({ name, suggestion }) => compact({ name, did_you_mean: suggestion })))
}

/**
 * The URL that was requested. When values of its path are invalid, as when a probe requests the template itself, the
 * example of the catalog: otherwise an index that lists the URL would send buyers to a path that never answers.
 */
function resourceOf({ resource, served: { route } }: Asked, validated: Validated, baseUrl: string): string {
  const misread =
    validated.kind === 'invalid' && validated.errors.some(({ loc: [where] }) => where === 'path')
  return misread ? baseUrl + examplePath(route) : resource
}

function asJson({ loc, msg, type, input, ctx }: ValidationError): JsonObject {
  return compact({ type, loc: [...loc], msg, input: input ?? null, ctx })
}
