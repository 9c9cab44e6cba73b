import { routeKey, type Catalog, type Operation, type Parameter } from '../../engine/catalog/catalog.ts'
import { readMeter } from '../../engine/catalog/price/meter.ts'
import type { Meter } from '../../engine/catalog/price/price.ts'
import type { Price } from '../../engine/catalog/price/price.ts'
import { readPrice } from '../../engine/catalog/price/rule.ts'
import { requestBody } from '../../engine/documents/openapi.ts'
import { openapiParameter } from '../../engine/documents/openapi-parameters.ts'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { parsePrice } from '../../engine/base/money.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import { offersOf, type PaymentRequired } from '../doctor/payment-required.ts'
import { bodySchema, documentPlaces, openapiOperations } from '../openapi-document.ts'
import { previewProtocols, revise } from '../preview.ts'

/** What buyers meet: of a catalog, or of a service that runs. */
export interface Snapshot {
  /** What is sold or shown, by its path; tools that only MCP serves as `tool game.app_intel`. */
  readonly items: ReadonlyMap<string, Item>
  /** By name, with a digest of the content; undefined: only the name is known. */
  readonly documents: ReadonlyMap<string, string | undefined>
  /** What holds for all calls, by its name in the report; one that is not known is left out. */
  readonly terms: ReadonlyMap<string, string>
}

export interface Item {
  /** Undefined: free. With a meter, the ceiling. */
  readonly price: Price | undefined
  /** What is counted after the work. */
  readonly meter?: Meter | undefined
  /** JSON Schema of each by name, with `required: true` where it must be given. */
  readonly parameters: ReadonlyMap<string, JsonObject>
  readonly settle: Operation['settle']
  /** An example answer; undefined: not known. */
  readonly example: Json | undefined
  readonly media: MediaTypes
  /** Milliseconds for which an answer is reused; undefined: not known. */
  readonly ttl: number | undefined
  /** Host of the upstream; undefined: none, or not known. */
  readonly host: string | undefined
}

/** Undefined: none, or not known. */
interface MediaTypes {
  readonly body: string | undefined
  readonly answer: string | undefined
}

/** Nothing here depends on what is configured: somebody is paid, everybody settles, every credential is set. */
const SOMEBODY = `0x${'1'.repeat(40)}`
const NOWHERE = 'http://localhost'
const SECRET = 'nobody signs anything with this in a plan'

export function catalogSnapshot(catalog: Catalog, baseUrl: string): Snapshot {
  const items = catalog.routes
    .filter(({ operation }) => !operation.planned)
    .map((route): [string, Item] => {
      const { kind, parameters } = route
      const { price, meter, settle, example, cache, upstream } = route.operation
      const [[, media] = []] = membersAt(requestBody(route), 'content')
      return [
        routeKey(route),
        {
          price: kind === 'paid' ? price : undefined,
          meter: kind === 'paid' ? meter : undefined,
          parameters: new Map([
            ...declaredRules(parameters.filter((each) => each.in !== 'body')),
            ...bodyRules(at(media, 'schema')),
          ]),
          settle: kind === 'paid' ? settle : 'after',
          example,
          media: mediaOf(route.operation),
          ttl: cache?.ttl ?? 0,
          host: hostOf(upstream),
        },
      ]
    })
  return {
    items: new Map([...items, ...toolsOf(catalog)]),
    documents: documentsOf(catalog, baseUrl),
    terms: new Map(termsOf(catalog)),
  }
}

function toolsOf({ operations, routes }: Catalog): [string, Item][] {
  const isTool = (operation: Operation): boolean => !routes.some((route) => route.operation === operation)
  return operations.flatMap((operation): [string, Item][] => {
    const { tool, price, meter, parameters, planned, settle, example } = operation
    if (tool === undefined || planned || !isTool(operation)) return []
    const [rules, media] = [declaredRules(parameters), mediaOf(operation)]
    const unknown = { ttl: undefined, host: undefined }
    const item = { price, meter, parameters: rules, settle, example, media, ...unknown }
    return [[`tool ${tool.server}.${tool.name}`, item]]
  })
}

function hostOf(upstream: Operation['upstream']): string | undefined {
  return upstream === undefined ? undefined : new URL(upstream.url.replace(/[{}*]/g, '')).host
}

function mediaOf({ body, response }: Operation): MediaTypes {
  return { body: body?.mediaType, answer: response.mediaType ?? 'application/json' }
}

function termsOf({ payments, unknownParameters, status, passthrough }: Catalog): [string, string][] {
  const { payTo, x402, mpp } = payments
  return [
    ['payments pay_to', payTo ?? 'none'],
    ['payments x402', x402?.networks.join(', ') ?? 'none'],
    ['payments x402 schemes', x402?.schemes.join(', ') ?? 'none'],
    ['payments mpp', mpp === undefined ? 'none' : `${mpp.method} on eip155:${mpp.chain}, ${mpp.currency}`],
    ['unknown parameters', unknownParameters],
    ['status', status],
    ['passthrough', passthrough?.url ?? 'none'],
    ['passthrough deny', passthrough?.deny.join(', ') || 'none'],
  ]
}

function documentsOf(catalog: Catalog, baseUrl: string): ReadonlyMap<string, string | undefined> {
  const { operations, payments, documents } = catalog
  const config = {
    payTo: SOMEBODY,
    rpcUrls: payments.mpp === undefined ? {} : { [payments.mpp.chain]: NOWHERE },
    signerKeys: [],
    channelKeys: [],
    mppRecipient: SOMEBODY,
    mppSecretKeys: [SECRET],
    facilitators: [{ url: NOWHERE, token: undefined }],
  }
  const unasked = (): Promise<never> => Promise.reject(new Error('no handler is run in a plan'))
  const handlers = Object.fromEntries(operations.map(({ handler }) => [handler, unasked]))
  const protocols = previewProtocols(catalog, config, baseUrl)
  const { pages, live } = revise({ catalog, handlers, protocols, baseUrl, mcpUrls: {}, secret: () => SECRET })
  const served = Object.entries(documents).filter(
    ([, { paths, planned }]) => !planned && paths.some((path) => pages.has(path) || live.has(path)),
  )
  return new Map(
    served.map(
      ([
        name,
        {
          paths: [path = ''],
        },
      ]) => [name, pages.get(path)?.etag],
    ),
  )
}

/**
 * What a running service tells: in its OpenAPI document, and in the 402 of a route. It may offer fewer networks than its
 * catalog, `after`, has: those are nothing that buyers gain or lose.
 */
export function serviceSnapshot(
  openapi: JsonObject,
  challenges: readonly PaymentRequired[],
  after: Snapshot,
): Snapshot {
  const operations = openapiOperations(openapi).filter(([, each]) => at(each, 'x-document') === undefined)
  const items = operations.map(([key, operation]): [string, Item] => {
    const price = publishedPrice(key, operation)
    const parameters = new Map([
      ...rulesOf(listAt(operation, 'parameters')),
      ...bodyRules(bodySchema(operation)),
    ])
    const known = after.items.get(key)?.parameters
    const [[body] = []] = membersAt(operation, 'requestBody', 'content')
    const [[answer] = []] = membersAt(operation, 'responses', '200', 'content')
    return [
      key,
      {
        price,
        meter: publishedMeter(operation),
        parameters: new Map(
          Array.from(parameters, ([name, rules]) => [name, withListRules(rules, known?.get(name))]),
        ),
        settle: textAt(operation, 'x-settle') === 'upfront' ? 'upfront' : 'after',
        example: exampleOf(openapi, operation),
        media: { body, answer },
        ttl: undefined,
        host: undefined,
      },
    ]
  })
  const documents = [...documentPlaces(openapi).keys()].map((name) => [name, undefined] as const)
  // Tools that only agents see are in no OpenAPI document.
  const unread = [...after.items].filter(([name]) => name.startsWith('tool '))
  return {
    items: new Map([...items, ...unread]),
    documents: new Map(documents),
    terms: new Map(offeredTerms(challenges, after)),
  }
}

/** The price in `x-payment-info`; undefined: free. */
function publishedPrice(name: string, operation: Json): Price | undefined {
  const published = at(operation, 'x-payment-info', 'price')
  if (published === undefined) return undefined
  const amount = textAt(published, 'amount')
  const fixed = amount === undefined ? undefined : parsePrice(amount)
  if (fixed?.kind === 'price') return fixed.value
  const ceiling = at(operation, 'x-price-meter', 'ceiling')
  const [min = '', max = ''] = ['min', 'max'].map((end) => textAt(ceiling ?? published, end))
  const rule = at(operation, 'x-price-rule')
  const most = ceiling === undefined || rule !== undefined ? undefined : parsePrice(max)
  if (most?.kind === 'price') return most.value
  const price = readPrice(min, max, JSON.stringify(rule ?? null))
  if (price === undefined)
    throw new Error(`the price of ${name} cannot be read: ${JSON.stringify(published)}`)
  return price
}

function publishedMeter(operation: Json): Meter | undefined {
  const published = at(operation, 'x-price-meter')
  return published === undefined ? undefined : readMeter(JSON.stringify(published))
}

function offeredTerms(challenges: readonly PaymentRequired[], { terms }: Snapshot): [string, string][] {
  const offers = challenges.map(offersOf)
  const offered = new Set(
    offers.flatMap(({ x402 = [] }) => x402.flatMap((each) => textAt(each, 'network') ?? [])),
  )
  const now = terms.get('payments x402') ?? 'none'
  const known = now === 'none' ? [] : now.split(', ')
  const x402 = [...new Set([...known, ...offered])].join(', ')
  const hasMpp = offers.some(({ mpp }) => mpp !== undefined)
  return [
    ...(offered.size === 0 ? [] : [['payments x402', x402] as [string, string]]),
    ...(hasMpp && terms.get('payments mpp') === 'none'
      ? [['payments mpp', 'tempo'] as [string, string]]
      : []),
  ]
}

/** The fields of an answer that are its own, without those that every answer has. */
function exampleOf(openapi: JsonObject, operation: Json | undefined): Json | undefined {
  const media = at(operation, 'responses', '200', 'content', 'application/json')
  const example = at(media, 'example')
  if (!isJsonObject(example)) return undefined
  const envelope = at(openapi, 'components', 'schemas', 'Envelope', 'properties')
  const common = ['preview', 'full', ...(isJsonObject(envelope) ? Object.keys(envelope) : [])]
  return Object.fromEntries(Object.entries(example).filter(([name]) => !common.includes(name)))
}

/**
 * For a list that is written as one text, OpenAPI has a pattern only: compared with a service, its rules count as
 * unchanged.
 */
function withListRules(rules: JsonObject, { items, minItems, maxItems }: JsonObject = {}): JsonObject {
  if (rules['type'] !== 'string' || items === undefined || minItems === undefined || maxItems === undefined)
    return rules
  const { pattern: _, ...others } = rules
  return { ...others, items, minItems, maxItems }
}

function declaredRules(parameters: readonly Parameter[]): ReadonlyMap<string, JsonObject> {
  const rules = rulesOf(parameters.map(openapiParameter))
  return new Map(
    parameters.map(({ name, list }) => {
      if (list === undefined) return [name, rules.get(name) ?? {}]
      const { items, minItems, maxItems, minimum = null, maximum = null } = list
      const limits = Object.entries({ minimum, maximum }).filter(([, limit]) => limit !== null)
      const of = { type: items, ...Object.fromEntries(limits) }
      // The pattern is made from the rules below.
      const { pattern: _, ...others } = rules.get(name) ?? {}
      return [name, { ...others, items: of, minItems, maxItems }]
    }),
  )
}

/** The members of a body as parameters; a body that has none, such as an array, as the parameter `body`. */
function bodyRules(schema: Json | undefined): ReadonlyMap<string, JsonObject> {
  const required = listAt(schema, 'required')
  if (isJsonObject(schema) && schema['properties'] === undefined)
    return Object.keys(schema).length === 0 ? new Map() : rulesOf([{ name: 'body', schema, required: true }])
  return rulesOf(
    membersAt(schema, 'properties').map(([name, rules]) => ({
      name,
      schema: rules,
      required: required.includes(name),
    })),
  )
}

/** The rules of Parameter Objects of OpenAPI, without the members that only explain them. */
function rulesOf(parameters: readonly Json[]): ReadonlyMap<string, JsonObject> {
  return new Map(
    parameters.map((parameter) => {
      const schema = at(parameter, 'schema')
      const { examples: _, example: __, description: ___, ...rules } = isJsonObject(schema) ? schema : {}
      const required = at(parameter, 'required') === true ? { required: true } : {}
      return [textAt(parameter, 'name') ?? '', { ...rules, ...required }]
    }),
  )
}
