import {
  findNetwork,
  formatPrice,
  type Catalog,
  type ErrorCode,
  type Json,
  type JsonObject,
} from '../../engine/internal.ts'
import { at, listAt, membersAt, readObject, textAt } from '../json-access.ts'
import { claimOf, type RouteClaim, type Field, type RouteClaims } from './route-claims.ts'

const NONE = 'none'

/** What a catalog file says by itself, without knowing what its server has credentials for. */
export function catalogClaims({ routes }: Catalog): RouteClaims {
  const claims = routes
    .filter(({ operation }) => !operation.planned)
    .map(({ path, kind, operation, parameters, sample, full }): [string, RouteClaim] => {
      const { price, skill } = operation
      return [
        path,
        claimOf(
          ['price', kind !== 'paid' || price === undefined ? 'free' : formatPrice(price)],
          [
            'parameters',
            joinParameters(parameters.map(({ name, required, default: value }) => [name, required, value])),
          ],
          ['sample', sample ?? NONE],
          // A preview is no skill of its own.
          ['skill', full === undefined ? skill : undefined],
        ),
      ]
    })
  return { document: 'catalog', covers: 'all', claims: new Map(claims) }
}

/** What the OpenAPI document says of every route; documents among its paths are left out. */
export function openapiClaims(document: string, openapi: JsonObject): RouteClaims {
  const claims = operationsOf(openapi)
    .filter(([, operation]) => at(operation, 'x-document') === undefined)
    .map(([path, operation]): [string, RouteClaim] => [path, openapiClaim(operation)])
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
    ['price', info === undefined ? 'free' : textAt(info, 'price', 'amount')],
    ['parameters', joinParameters(parameters)],
    ['sample', textAt(operation, 'x-free-preview') ?? NONE],
    ['available', at(operation, 'x-available') === false ? 'no' : 'yes'],
    ['protocols', info === undefined ? undefined : protocols.join(', ')],
    ['mpp', amount === undefined ? undefined : `${amount} of ${currency}`],
  )
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

/** Where the documents of a service are served, by the names the catalog gives them. */
export function documentPlaces(openapi: JsonObject): ReadonlyMap<string, readonly string[]> {
  const places = new Map<string, string[]>()
  for (const [path, operation] of operationsOf(openapi)) {
    const name = textAt(operation, 'x-document')
    if (name !== undefined) places.set(name, [...(places.get(name) ?? []), path])
  }
  return places
}

/** Examples of the parameters in a path, by their names. */
export function pathExamples(openapi: JsonObject, path: string): ReadonlyMap<string, string> {
  const parameters = listAt(openapi, 'paths', path, 'get', 'parameters')
  return new Map(
    parameters.flatMap((parameter): [string, string][] => {
      const name = textAt(parameter, 'name')
      const shown = at(parameter, 'schema', 'example') ?? at(parameter, 'schema', 'default')
      return name === undefined || shown === undefined ? [] : [[name, spell(shown)]]
    }),
  )
}

function operationsOf(openapi: JsonObject): [string, Json][] {
  return membersAt(openapi, 'paths').flatMap(([path, item]): [string, Json][] => {
    const operation = at(item, 'get')
    return operation === undefined ? [] : [[path, operation]]
  })
}

type Reader = (document: string, text: string) => RouteClaims | undefined

/** Documents with prices that machines read, by name; a reader answers undefined for what is no JSON object. */
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
      textAt(item, 'path') ?? '',
      claimOf(
        ['price', textAt(item, 'priceUsd') ?? textAt(item, 'price', 'amount') ?? 'free'],
        ['sample', textAt(item, 'sample')],
        ['available', at(item, 'available') === false ? 'no' : 'yes'],
        ...offerFields(listAt(item, 'accepts')),
      ),
    ])
    return { document, covers, claims: new Map(claims) }
  })
}

/** How the description of a skill ends that is called over HTTP; the summary of the catalog precedes it. */
const CALL =
  /(?:^| )(?:Price: (\d+\.\d+) USD per call|Free)\.(?: Charged first\.)? GET (\S+)(?: or MCP tool \S+ at \S+)?$/

function agentCardClaims(document: string, card: JsonObject): RouteClaims {
  const claims = listAt(card, 'skills').flatMap((skill): [string, RouteClaim][] => {
    const [, price = 'free', url] = CALL.exec(textAt(skill, 'description') ?? '') ?? []
    // One that cannot be used now names no route.
    if (url === undefined) return []
    const available = at(skill, 'available') === false ? 'no' : 'yes'
    return [
      [pathOf(url), claimOf(['price', price], ['skill', textAt(skill, 'id')], ['available', available])],
    ]
  })
  return { document, covers: 'skills now', claims: new Map(claims) }
}

const GUIDE_ENTRY = /^- \[[^\]]*\]\((\S+?)\): (?:\$(\d+\.\d+)|free)\. /gm

/** The guide for language models lists what is sold now. Lines on tools of MCP servers are left out. */
function guideClaims(document: string, text: string): RouteClaims {
  const claims = [...text.matchAll(GUIDE_ENTRY)].flatMap(
    ([, url = '', price = 'free']): [string, RouteClaim][] => {
      const path = pathOf(url)
      return path.startsWith('/paid/') ? [[path, claimOf(['price', price], ['available', 'yes'])]] : []
    },
  )
  return { document, covers: 'sold now', claims: new Map(claims) }
}

/** A 402 as it was received. */
export interface PaymentRequired {
  /** Of the route, as the catalog writes it. */
  readonly path: string
  readonly header: (name: string) => string | undefined
  readonly body: string
}

/** What the 402s say: their bodies for readers, and the offers of each protocol and network. */
export function challengeClaims(challenges: readonly PaymentRequired[]): RouteClaims[] {
  const said = new Map<string, Map<string, RouteClaim>>()
  for (const challenge of challenges)
    for (const [document, claim] of claimsOf(challenge))
      said.set(document, (said.get(document) ?? new Map<string, RouteClaim>()).set(challenge.path, claim))
  return Array.from(said, ([document, claims]) => ({ document, covers: 'sold', claims }))
}

/** Why a request would be refused whatever its parameters are. */
const UNREADY: ReadonlySet<string> = new Set<ErrorCode>(['not_configured', 'not_implemented'])

/** Of every token on Tempo. */
const TIP20_DECIMALS = 6

function* claimsOf({ header, body }: PaymentRequired): Iterable<[string, RouteClaim]> {
  const required = decode(header('payment-required'))
  const request = decode(/\brequest="([\w-]+)"/.exec(header('www-authenticate') ?? '')?.[1])
  const read = readObject(body)
  const sample = textAt(read, 'sample')
  yield [
    '402',
    claimOf(
      ['price', textAt(read, 'price', 'amount')],
      ['sample', sample === undefined ? NONE : pathOf(sample)],
      ['available', UNREADY.has(textAt(read, 'would_fail', 'code') ?? '') ? 'no' : 'yes'],
      ['protocols', [...(required ? ['x402'] : []), ...(request ? ['mpp'] : [])].join(', ')],
    ),
  ]
  for (const offer of listAt(required, 'accepts')) {
    const [field] = offerFields([offer])
    if (field === undefined) continue
    const decimals = findNetwork(field[0])?.token.decimals
    const price = decimals === undefined ? undefined : priceOf(textAt(offer, 'amount'), decimals)
    yield [`402 by x402 on ${field[0]}`, claimOf(['price', price], field)]
  }
  const amount = textAt(request, 'amount')
  if (amount !== undefined)
    yield [
      '402 by mpp',
      claimOf(
        ['price', priceOf(amount, TIP20_DECIMALS)],
        ['mpp', `${amount} of ${textAt(request, 'currency')}`],
      ),
    ]
}

/** The offers of x402 as fields, one for each network. */
function offerFields(accepts: readonly Json[]): [Field, string][] {
  return accepts.flatMap((offer): [Field, string][] => {
    const network = textAt(offer, 'network')
    const [amount, asset, payTo] = ['amount', 'asset', 'payTo'].map((name) => textAt(offer, name))
    return network === undefined || !isEip155(network) ? [] : [[network, `${amount} of ${asset} to ${payTo}`]]
  })
}

function isEip155(network: string): network is `eip155:${string}` {
  return network.startsWith('eip155:')
}

/** Atomic units of a token as a price with at least six decimals; undefined for what is no amount. */
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
