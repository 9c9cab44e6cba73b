import { withoutPaid } from '../catalog/route-path.ts'
import { type Catalog, type Operation, type Route, routeKey, type ToolEndpoint } from '../catalog/catalog.ts'
import { formatShort, shortDecimal } from '../base/money.ts'
import type { Meter } from '../catalog/price/price.ts'
import { highestOf, type Price } from '../catalog/price/price.ts'
import {
  meterTable,
  type PriceRow,
  priceTable,
  ruleNote,
  spellMetered,
  spellRule,
} from '../catalog/price/text.ts'
import { spellPaths, spellReferences } from '../catalog/route-reference.ts'
import { type ErrorCode, ERRORS } from '../base/errors.ts'
import { conditionOf, joinSentences, sentence, spellDuration } from '../base/words.ts'
import { exampleAnswer } from './answer-example.ts'
import { type ParameterView, routeParameters, toolArguments } from './parameter-view.ts'
import { type Facts, operationPath } from './registry.ts'

/**
 * An operation in the words of its readers: over HTTP a route, in MCP a tool. Documents, pages, 402s, tools and the
 * command line show these texts and add none of their own about an operation. A text is empty where there is nothing
 * to say. A type alias, so that templates accept it.
 */
export type OperationView = {
  /** How callers name it: `/paid/app/{appid}`, `POST /paid/translate`, `app_intel`. */
  readonly name: string
  /** Two or three words: `Top sellers`. */
  readonly title: string
  /** What it does, as declared: for members that are no text, such as `summary` of OpenAPI. */
  readonly summary: string
  /** The same as a sentence. */
  readonly promise: string
  readonly useWhen: string
  readonly description: string
  /** That it may be removed. */
  readonly deprecation: string
  /** That it cannot be called now. */
  readonly unavailability: string
  /** `$0.005`, or `$0.001 to $0.05`. */
  readonly price: string
  /** The rule of a computed price, with amounts in USD. */
  readonly rule: string
  /** Calls with their prices, of a computed price. */
  readonly prices: readonly PriceRow[]
  /** `Price: $0.005 per call.`, with the rule; or that it is free. */
  readonly cost: string
  /** `Charged first.`, where it is charged before the work. */
  readonly chargedFirst: string
  /** When it charges, and what then holds. */
  readonly charging: string
  /** How it is requested, unless by a plain GET: `POST, application/json body.` */
  readonly request: string
  /** That its answer is sent while it is made. */
  readonly streaming: string
  /** How old an answer may be. */
  readonly freshness: string
  /** What it takes and answers with where that is no JSON, and how long it may take. */
  readonly limit: string
  /** Whose data a tool knows. */
  readonly identity: string
  /** How it is called: `GET https://…/paid/app`, `MCP tool app_intel at https://…/mcp/game`. */
  readonly call: string
  /** Path of its page. */
  readonly page: string
  /** Path of the free sample of a paid route. */
  readonly sample: string
  /** Path of the paid route of a sample. */
  readonly full: string
  /** The sample of a paid route, or the route of a sample, in a sentence. */
  readonly preview: string
  readonly parameters: readonly ParameterView[]
  /** An answer, as JSON. */
  readonly example: string
  /** Where its data comes from, in the words the sources ask for. */
  readonly attributions: readonly string[]
  /** The failures that a caller is likeliest to meet. */
  readonly errors: readonly { readonly code: string; readonly status: string }[]
}

/** A route, for readers over HTTP. */
export function viewRoute(catalog: Catalog, facts: Facts, route: Route): OperationView {
  const { operation, summary, sample = '', full = '' } = route
  const price = priceOf(route)
  return {
    ...viewOperation(catalog, operation, price, spellPaths),
    name: routeKey(route),
    title: routeTitle(route) + (full === '' ? '' : ' (free preview)'),
    summary,
    promise: sentence(summary),
    cost: price === undefined ? 'Free: no payment.' : costOf(price, operation.meter),
    charging: chargingOf(route),
    unavailability: facts.available(operation) ? '' : 'Not available now: answers 503, which is not charged.',
    request: joinSentences(requestOf(operation), route.requires === undefined ? '' : WITH_PROOF),
    limit: `${bodyOf(operation)}Answers${mediaOf(operation)} within ${spellDuration(operation.timeout)}.`,
    identity: route.requires === undefined ? '' : SIGNED_IN,
    call: `${operation.method} ${facts.baseUrl}${route.path}`,
    page: full === '' ? (operationPath(catalog, route) ?? '') : '',
    sample,
    full,
    preview:
      full === ''
        ? sample && `Free preview: ${sample}`
        : `Free preview of ${full}: it may show fewer items or fields.`,
    get parameters() {
      return routeParameters(route)
    },
    get example() {
      const example = exampleAnswer(catalog, route)
      return example === undefined ? '' : JSON.stringify(example, undefined, 2)
    },
    errors: errorsOf(route),
  }
}

const WITH_PROOF = 'Sign in with SIGN-IN-WITH-X.'

const SIGNED_IN =
  'It knows only what belongs to the wallet that has signed a sign-in-with-x message, in the header SIGN-IN-WITH-X. Without one the answer is a 402 without offers that says what to sign.'

const IDENTITY = {
  payer: 'It knows only what belongs to the wallet that pays.',
  signer:
    'It knows only what belongs to the wallet that has signed a sign-in-with-x message, under "sign-in-with-x" in params._meta. Without one the result is an error that says what to sign.',
} as const

/** A tool, for readers in MCP. */
export function viewTool(
  catalog: Catalog,
  facts: Facts,
  { operation, tool, parameters, url }: Pick<ToolEndpoint, 'operation' | 'tool' | 'parameters' | 'url'>,
): OperationView {
  const { summary, price, example } = operation
  const free = tool.requires === 'signer' ? 'Free; needs a sign-in-with-x proof of your wallet.' : 'Free.'
  return {
    ...viewOperation(catalog, operation, price, (text) =>
      spellReferences(text, (key) => toolReference(catalog, facts, tool.server, key)),
    ),
    name: tool.name,
    title: titleOf(operation, tool.name),
    summary,
    promise: sentence(summary),
    cost: price === undefined ? free : costOf(price, operation.meter),
    unavailability: facts.available(operation) ? '' : UNAVAILABLE,
    charging: joinSentences(
      isChargedFirst(operation) ? `This tool ${UPFRONT}` : CHARGING,
      operation.meter === undefined ? '' : METERED,
    ),
    request: '',
    limit: `Answers within ${spellDuration(operation.timeout)}.`,
    identity: tool.requires === undefined ? '' : IDENTITY[tool.requires],
    call: `MCP tool ${tool.name} at ${url}`,
    page: '',
    sample: '',
    full: '',
    preview: '',
    get parameters() {
      return toolArguments(parameters)
    },
    get example() {
      return example === undefined ? '' : JSON.stringify(example, undefined, 2)
    },
    errors: [],
  }
}

type CommonText =
  | 'useWhen'
  | 'description'
  | 'deprecation'
  | 'price'
  | 'rule'
  | 'prices'
  | 'chargedFirst'
  | 'streaming'
  | 'freshness'
  | 'attributions'

/** What is the same over HTTP and in MCP, but for how other routes are named. */
function viewOperation(
  catalog: Catalog,
  operation: Operation,
  price: Price | undefined,
  spell: (text: string) => string,
): Pick<OperationView, CommonText> {
  const { useWhen, description, cache, response, meter } = operation
  return {
    useWhen: useWhen === undefined ? '' : conditionOf(spell(useWhen)),
    description: description === undefined ? '' : sentence(spell(description)),
    deprecation: operation.deprecated ? DEPRECATED : '',
    price: price === undefined ? '' : spellDollars(price, meter),
    rule: price === undefined ? '' : spellRuleOf(price, meter),
    prices: price === undefined ? [] : tableOf(price, meter).map(inDollars),
    chargedFirst: price !== undefined && isChargedFirst(operation) ? sentence(CHARGED_FIRST) : '',
    streaming: response.stream ? streamingOf(operation) : '',
    freshness:
      cache === undefined
        ? 'Not cached: every call runs the handler.'
        : `Cached for ${spellDuration(cache.ttl)}.`,
    attributions: attributionsOf(catalog, operation),
  }
}

function streamingOf({ response: { mediaType }, meter }: Operation): string {
  return meter === undefined
    ? `Streams ${mediaType}.`
    : `Answers with ${mediaType}, in one piece once its price is known and paid.`
}

export const UNAVAILABLE = 'Not available now.'

const DEPRECATED = 'Deprecated: it still answers, and may be removed.'

/** Two or three words for a route. */
export function routeTitle({ operation, full, path }: Route): string {
  return titleOf(operation, wordsOf(full ?? path))
}

/** Two or three words for an operation: its own title, otherwise those of its tool, or of its path. */
function titleOf({ title, tool, id }: Operation, name: string): string {
  if (title !== undefined) return title
  const words = (tool?.name ?? (name || id)).replaceAll(/[_.-]+/g, ' ').trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The words of a path: without `paid`, and without parameters. */
function wordsOf(path: string): string {
  const steps = withoutPaid(path).split('/')
  return steps
    .filter((step) => !step.includes('{'))
    .join(' ')
    .trim()
}

/** The route of this key as readers of this MCP server can call it. */
function toolReference({ routes }: Catalog, facts: Facts, server: string, key: string): string {
  const route = routes.find((each) => routeKey(each) === key)
  const { tool, method } = route?.operation ?? {}
  if (tool?.server === server) return tool.name
  if (tool !== undefined && facts.mcpServers.has(tool.server))
    return `${tool.name} of the server ${tool.server}`
  return route === undefined ? key : `${method} ${facts.baseUrl}${route.path}`
}

/** The price of a route; a sample is free, although its operation has a price. */
function priceOf({ kind, operation }: Route): Price | undefined {
  return kind === 'paid' ? operation.price : undefined
}

/** A price for people: `$0.005`, `$0.001 to $0.05`, `up to $0.05`. */
export function spellDollars(price: Price, meter?: Meter): string {
  if (meter !== undefined) return `up to $${formatShort(highestOf(price))}`
  if (typeof price === 'bigint') return `$${formatShort(price)}`
  return `$${formatShort(price.lowest)} to $${formatShort(price.highest)}`
}

/** An amount in USD for people, from its decimal: `$0.005` for `0.005000`. */
export function dollarsOf(amount: string): string {
  return `$${shortDecimal(amount)}`
}

function inDollars({ call, price }: PriceRow): PriceRow {
  return { call, price: dollarsOf(price) }
}

function spellRuleOf(price: Price, meter: Meter | undefined): string {
  if (meter !== undefined) return spellMetered(price, meter)
  return typeof price === 'object' ? spellRule(price.rule) : ''
}

function tableOf(price: Price, meter: Meter | undefined): readonly PriceRow[] {
  if (meter !== undefined) return meterTable(price, meter)
  return typeof price === 'object' ? priceTable(price) : []
}

function costOf(price: Price, meter: Meter | undefined): string {
  return `Price: ${spellDollars(price, meter)} per call${ruleNote(price, meter)}.`
}

/** Label for prices that are charged before the work. */
export const CHARGED_FIRST = 'Charged first'

const METERED =
  'You authorize the most, and pay after the work what the call has used; the receipt says what was counted.'

const CHARGING =
  'You pay for a 200 only. Errors say under "charged" whether money moved; if it did, the same payment sent again is answered.'
const UPFRONT =
  'is charged before the work; if that fails, the same payment sent again runs it without another charge.'
const STREAMED =
  'streams, and is charged before its first byte; if it breaks off, the same payment sent again gets all of it without another charge.'

function isChargedFirst({ settle, response, meter }: Operation): boolean {
  return settle === 'upfront' || (response.stream && meter === undefined)
}

/** Whether a route charges before its work. */
export function isUpfront({ kind, operation }: Route): boolean {
  return kind === 'paid' && isChargedFirst(operation)
}

/** When a route charges. */
export function chargingOf(route: Route): string {
  if (route.kind === 'paid' && route.operation.meter !== undefined) return `${CHARGING} ${METERED}`
  if (!isUpfront(route)) return CHARGING
  return `This route ${route.operation.response.stream ? STREAMED : UPFRONT}`
}

/** When these routes charge. */
export function chargingOfAll(routes: readonly Route[]): string {
  return routes.some(isUpfront) ? `${CHARGING} What is "${CHARGED_FIRST}" ${UPFRONT}` : CHARGING
}

function requestOf({ method, body }: Operation): string {
  if (method === 'GET') return ''
  return body === undefined ? `${method}.` : `${method}, ${body.mediaType} body.`
}

function bodyOf({ body }: Operation): string {
  if (body === undefined || body.form === 'properties') return ''
  return `The body is ${body.mediaType}, up to ${body.maxSize.toLocaleString('en-US')} bytes. `
}

function mediaOf({ response: { mediaType } }: Operation): string {
  return mediaType === undefined ? '' : ` with ${mediaType}`
}

function attributionsOf({ sources }: Catalog, operation: Operation): string[] {
  const words = operation.sources.map((name) => sources[name]?.attribution ?? sources[name]?.title ?? name)
  return [...new Set(words.map(sentence))]
}

function errorsOf({ kind, parameters, operation }: Route): OperationView['errors'] {
  const codes: ErrorCode[] = [
    ...(kind === 'paid' ? (['payment_required'] as const) : []),
    ...(operation.access.upstream ? (['upstream_forbidden'] as const) : []),
    ...(parameters.length === 0 ? [] : (['parameters_invalid'] as const)),
    ...(operation.sources.length === 0
      ? []
      : (['source_error', 'source_limited', 'source_timeout'] as const)),
    'handler_timeout',
  ]
  return codes.map((code) => ({ code, status: String(ERRORS[code].status) }))
}
