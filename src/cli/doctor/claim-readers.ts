import { fillPath, METHODS, routeKey, type Catalog } from '../../engine/catalog/catalog.ts'
import { spellPrice } from '../../engine/catalog/price/text.ts'
import type { ErrorCode } from '../../engine/base/errors.ts'
import type { Json, JsonObject } from '../../engine/base/json.ts'
import { findNetwork } from '../../engine/base/networks.ts'
import { at, listAt, membersAt, readObject, textAt } from '../json-access.ts'
import { claimOf, type RouteClaim, type Field, type RouteClaims } from './route-claims.ts'

const NONE = 'none'

/** The claims of a catalog file, without knowing the credentials of its server. */
export function catalogClaims({ routes }: Catalog): RouteClaims {
  const claims = routes
    .filter(({ operation }) => !operation.planned)
    .map((route): [string, RouteClaim] => {
      const { kind, operation, parameters, sample, full } = route
      const { price, skill, body } = operation
      return [
        routeKey(route),
        claimOf(
          ['price', kind !== 'paid' || price === undefined ? 'free' : spellPrice(price)],
          [
            'parameters',
            joinParameters([
              ...parameters.map(({ name, required, default: value }) => [name, required, value] as const),
              ...(body?.form === 'whole' ? membersOf(body.schema) : []),
            ]),
          ],
          ['sample', sample ?? NONE],
          // A preview has no skill of its own.
          ['skill', full === undefined ? skill : undefined],
        ),
      ]
    })
  return { document: 'catalog', covers: 'all', claims: new Map(claims) }
}

/** The claims of the OpenAPI document about every route, without the generated documents among its paths. */
export function openapiClaims(document: string, openapi: JsonObject): RouteClaims {
  const claims = openapiOperations(openapi)
    .filter(([, operation]) => at(operation, 'x-document') === undefined)
    .map(([key, operation]): [string, RouteClaim] => [key, openapiClaim(operation)])
  return { document, covers: 'all', claims: new Map(claims) }
}

function openapiClaim(operation: Json): RouteClaim {
  const parameters = listAt(operation, 'parameters').map(
    (parameter) =>
      [
        textAt(parameter, 'name') ?? '',
        at(parameter, 'required') === true,
        at(parameter, 'schema', 'default'),
      ] as const,
  )
  const info = at(operation, 'x-payment-info')
  const protocols = listAt(info, 'protocols').flatMap((each) => membersAt(each).map(([name]) => name))
  const [offer] = listAt(info, 'offers')
  const [amount, currency] = [textAt(offer, 'amount'), textAt(offer, 'currency')]
  return claimOf(
    ['price', info === undefined ? 'free' : spellAt(info, 'price')],
    ['parameters', joinParameters([...parameters, ...membersOf(bodySchema(operation))])],
    ['sample', textAt(operation, 'x-free-preview') ?? NONE],
    ['available', at(operation, 'x-available') === false ? 'no' : 'yes'],
    ['protocols', info === undefined ? undefined : protocols.join(', ')],
    ['mpp', amount === undefined ? undefined : `${amount} of ${currency}`],
  )
}

/** The schema of a JSON or form body. */
export function bodySchema(operation: Json | undefined): Json | undefined {
  const [[, media] = []] = membersAt(operation, 'requestBody', 'content')
  return at(media, 'schema')
}

function membersOf(schema: Json | undefined): (readonly [string, boolean, Json | undefined])[] {
  const required = listAt(schema, 'required')
  return membersAt(schema, 'properties').map(([name, rules]) => [
    name,
    required.includes(name),
    at(rules, 'default'),
  ])
}

/** An amount, or the range of a rule. */
function spellAt(value: Json | undefined, ...path: readonly string[]): string | undefined {
  const [min, max] = ['min', 'max'].map((end) => textAt(value, ...path, end))
  return textAt(value, ...path, 'amount') ?? (min === undefined ? undefined : `${min} to ${max}`)
}

/** `limit*` must be given, `country=US` has a default, the rest may be left out. */
function joinParameters(parameters: readonly (readonly [string, boolean, Json | undefined])[]): string {
  const joined = parameters.map(([name, required, value]) => {
    if (required) return `${name}*`
    return value === undefined || value === '' ? name : `${name}=${spell(value)}`
  })
  return joined.join(', ') || NONE
}

function spell(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Paths of the documents of a service, by their names in the catalog. */
export function documentPlaces(openapi: JsonObject): ReadonlyMap<string, readonly string[]> {
  // Documents that are no operations are listed apart.
  const apart = membersAt(openapi, 'x-documents').map(([name]): [string, string[]] => [
    name,
    listAt(openapi, 'x-documents', name).filter((path) => typeof path === 'string'),
  ])
  const places = new Map(apart)
  for (const [path, operation] of openapiOperations(openapi)) {
    const name = textAt(operation, 'x-document')
    if (name !== undefined) places.set(name, [...(places.get(name) ?? []), path])
  }
  return places
}

/** A path filled with the examples of its operation's parameters; one without an example stays a template. */
export function examplePath(path: string, operation: Json | undefined): string {
  return fillPath(path, (wanted) => {
    const parameter = listAt(operation, 'parameters').find((each) => textAt(each, 'name') === wanted)
    const schema = at(parameter, 'schema')
    const shown = at(schema, 'example') ?? listAt(schema, 'examples')[0] ?? at(schema, 'default')
    return shown === undefined ? wanted : spell(shown)
  })
}

/** The method and the path of a key. */
export function splitKey(key: string): readonly [method: string, path: string] {
  const [path = '', method = 'GET'] = key.split(' ').toReversed()
  return [method, path]
}

/** Operations by the key of their route in a catalog: `/paid/app`, `POST /paid/translate`. */
export function openapiOperations(openapi: JsonObject): [string, Json][] {
  return membersAt(openapi, 'paths').flatMap(([path, item]) =>
    METHODS.flatMap((method): [string, Json][] => {
      const operation = at(item, method.toLowerCase())
      return operation === undefined ? [] : [[keyOf(method, path), operation]]
    }),
  )
}

function keyOf(method: string, path: string): string {
  return method === 'GET' ? path : `${method} ${path}`
}

type Reader = (document: string, text: string) => RouteClaims | undefined

/** Documents with prices that machines read, by name; a reader answers undefined if it is not a JSON object. */
export const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['openapi', reader(openapiClaims)],
  ['index', listing('all', (index) => listAt(index, 'routes'))],
  [
    'categories',
    listing('all', (all) => listAt(all, 'categories').flatMap((each) => listAt(each, 'routes'))),
  ],
  ['x402', listing('sold by x402', (manifest) => listAt(manifest, 'endpoints'))],
  ['x402-resources', listing('sold by x402', (listed) => listAt(listed, 'items'))],
  ['agent-card', reader(agentCardClaims)],
  ['llms', guideClaims],
])

function reader(read: (document: string, value: JsonObject) => RouteClaims): Reader {
  return (document, text) => {
    const value = readObject(text)
    return value === undefined ? undefined : read(document, value)
  }
}

/** Listings have the same members under different roots. */
function listing(covers: RouteClaims['covers'], itemsOf: (value: JsonObject) => readonly Json[]): Reader {
  return reader((document, value) => {
    const claims = itemsOf(value).map((item): [string, RouteClaim] => [
      keyOf(textAt(item, 'method') ?? 'GET', textAt(item, 'path') ?? ''),
      claimOf(
        ['price', textAt(item, 'priceUsd') ?? spellAt(item, 'price') ?? 'free'],
        ['sample', textAt(item, 'sample')],
        ['available', at(item, 'available') === false ? 'no' : 'yes'],
        ...offerFields(listAt(item, 'accepts'), textAt(item, 'price', 'rule') !== undefined),
      ),
    ])
    return { document, covers, claims: new Map(claims) }
  })
}

/** How the description of a skill ends that is called over HTTP; the summary of the catalog precedes it. */
const CALL =
  /(?:^| )(?:Price: (\d+\.\d+(?: to \d+\.\d+)?) USD per call(?: \(.*\))?|Free)\.(?: Charged first\.)? ([A-Z]+) (\S+)(?: or MCP tool \S+ at \S+)?$/

function agentCardClaims(document: string, card: JsonObject): RouteClaims {
  const claims = listAt(card, 'skills').flatMap((skill): [string, RouteClaim][] => {
    const [, price = 'free', method = '', url] = CALL.exec(textAt(skill, 'description') ?? '') ?? []
    // One that cannot be used now names no route.
    if (url === undefined) return []
    const available = at(skill, 'available') === false ? 'no' : 'yes'
    return [
      [
        keyOf(method, pathOf(url)),
        claimOf(['price', price], ['skill', textAt(skill, 'id')], ['available', available]),
      ],
    ]
  })
  return { document, covers: 'skills now', claims: new Map(claims) }
}

const GUIDE_ENTRY =
  /^- \[[^\]]*\]\((\S+?)\): (?:\$(\d+\.\d+(?: to \d+\.\d+)?)(?: \(.*?\))?|free)\.(?: (POST|PUT|PATCH|DELETE)[.,])? /gm

/** The claims of the guide for language models, which lists what is sold now. Ignores lines on MCP tools. */
function guideClaims(document: string, text: string): RouteClaims {
  const claims = [...text.matchAll(GUIDE_ENTRY)].flatMap(
    ([, url = '', price = 'free', method = 'GET']): [string, RouteClaim][] => {
      const path = pathOf(url)
      return path.startsWith('/paid/')
        ? [[keyOf(method, path), claimOf(['price', price], ['available', 'yes'])]]
        : []
    },
  )
  return { document, covers: 'sold now', claims: new Map(claims) }
}

/** A 402 as it was received. */
export interface PaymentRequired {
  /** Key of the route in the catalog. */
  readonly key: string
  readonly headers: Pick<Headers, 'get'>
  readonly body: string
}

/** What the 402s say: their bodies for readers, and the offers of each protocol and network. */
export function challengeClaims(challenges: readonly PaymentRequired[]): RouteClaims[] {
  const said = new Map<string, Map<string, RouteClaim>>()
  for (const challenge of challenges)
    for (const [document, claim] of claimsOf(challenge))
      said.set(document, (said.get(document) ?? new Map<string, RouteClaim>()).set(challenge.key, claim))
  return Array.from(said, ([document, claims]) => ({ document, covers: 'sold', claims }))
}

/** Reasons to refuse every request, whatever its parameters. */
const UNREADY: ReadonlySet<string> = new Set<ErrorCode>(['not_configured', 'not_implemented'])

/** Decimals of every token on Tempo. */
const TIP20_DECIMALS = 6

function* claimsOf({ headers, body }: PaymentRequired): Iterable<[string, RouteClaim]> {
  const required = decode(headers.get('payment-required') ?? undefined)
  const request = decode(/\brequest="([\w-]+)"/.exec(headers.get('www-authenticate') ?? '')?.[1])
  const read = readObject(body)
  const sample = textAt(read, 'sample')
  const isComputed = textAt(read, 'price', 'rule') !== undefined
  const price = isComputed ? 'due' : 'price'
  yield [
    '402',
    claimOf(
      [price, textAt(read, 'price', 'amount')],
      ['sample', sample === undefined ? NONE : pathOf(sample)],
      ['available', UNREADY.has(textAt(read, 'would_fail', 'code') ?? '') ? 'no' : 'yes'],
      ['protocols', [...(required ? ['x402'] : []), ...(request ? ['mpp'] : [])].join(', ')],
    ),
  ]
  for (const offer of listAt(required, 'accepts')) {
    const [field] = offerFields([offer], isComputed)
    if (field === undefined) continue
    const decimals = findNetwork(field[0])?.token.decimals
    const amount = decimals === undefined ? undefined : priceOf(textAt(offer, 'amount'), decimals)
    yield [`402 by x402 on ${field[0]}`, claimOf([price, amount], field)]
  }
  const amount = textAt(request, 'amount')
  if (amount !== undefined)
    yield [
      '402 by mpp',
      claimOf(
        [price, priceOf(amount, TIP20_DECIMALS)],
        ['mpp', isComputed ? undefined : `${amount} of ${textAt(request, 'currency')}`],
      ),
    ]
}

/** The offers of x402 as fields, one for each network; the amount of a computed price is another in each. */
function offerFields(accepts: readonly Json[], isComputed: boolean): [Field, string][] {
  return accepts.flatMap((offer): [Field, string][] => {
    const network = textAt(offer, 'network')
    const [amount, asset, payTo] = ['amount', 'asset', 'payTo'].map((name) => textAt(offer, name))
    return network === undefined || !isEip155(network)
      ? []
      : [[network, `${isComputed ? '' : `${amount} of `}${asset} to ${payTo}`]]
  })
}

function isEip155(network: string): network is `eip155:${string}` {
  return network.startsWith('eip155:')
}

/** Atomic units of a token as a price with at least six decimals; undefined if it is not an amount. */
function priceOf(amount: string | undefined, decimals: number): string | undefined {
  if (amount === undefined || !/^\d+$/.test(amount)) return undefined
  const digits = amount.padStart(decimals + 1, '0')
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return `${digits.slice(0, digits.length - decimals)}.${fraction.padEnd(6, '0')}`
}

/** base64 or base64url of a JSON object. */
function decode(text: string | undefined): JsonObject | undefined {
  return text === undefined ? undefined : readObject(Buffer.from(text, 'base64').toString('utf8'))
}

/** An address of this service as its path, templates in braces. */
function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/]+/, '').replace(/[?#].*$/, '')
  return path.replaceAll('%7B', '{').replaceAll('%7D', '}')
}
