import { JSON_MEDIA } from '../catalog/body.ts'
import { error, warning, type Issue, type Position } from '../catalog/issue.ts'
import {
  examplePath,
  iconUrl,
  routeKey,
  type Catalog,
  type Endpoint,
  type Service,
} from '../catalog/catalog.ts'
import { highestOf } from '../catalog/price/price.ts'
import { spellPaths } from '../catalog/route-reference.ts'
import type { Address } from '../base/address.ts'
import { ERRORS, type CorrectedOffer } from '../base/errors.ts'
import { asciiJson, compact, escapeNonAscii, type JsonObject } from '../base/json.ts'
import { once } from '../base/once.ts'
import { conditionOf, shortenAtWord } from '../base/words.ts'
import type { Micros } from '../base/money.ts'
import { findNetwork, findSvmNetwork } from '../base/networks.ts'
import { TOKEN_LENGTH } from '../payment/random-token.ts'
import type { Challenge, IssuedChallenge } from '../payment/challenge.ts'
import { channelOffer } from './batch-settlement-evm/channel-offer.ts'
import { encodeAfter } from './base64-prefix.ts'
import { bazaarExtension, COMPLETE, detailsOf, LEAST, reaches, type Detail } from './bazaar.ts'
import { offerOf } from './exact-evm/accepted-network.ts'
import type { Listing } from './listing.ts'
import { IDENTIFIER, IDENTIFIER_EXTENSION } from './payload.ts'
import { svmOfferOf } from './exact-svm/svm-offer.ts'
import { uptoOffer } from './upto-evm/upto-offer.ts'
import {
  priceKindOf,
  requirementsOf,
  settleOrderOf,
  toAtomic,
  type NetworkOffer,
  type Requirements,
} from './requirements.ts'
import { isOfferedInV1, offersInV1 } from './v1.ts'

/**
 * Bytes of PAYMENT-REQUIRED: with the first, all headers of a 402 that also offers MPP fit into the 4 KB of common
 * proxies; above the second it does not fit alone.
 */
export const HEADER_TARGET = 3_000
const HEADER_LIMIT = 4_096

/** The name of x402’s extension of MCP, which only the newest revision and few clients know. */
export const MCP_EXTENSION = 'org.x402/payment'

const TOKEN_SCHEMA = {}

interface ChallengeSettings {
  readonly service: Service
  readonly baseUrl: string
  /** What the schemes offer, in order of preference. */
  readonly offers: readonly NetworkOffer[]
  /** What they name of the moment; each is the same object until it changes. Documents have none of it. */
  readonly recent?: () => readonly CorrectedOffer[]
  /** Whether the body offers version 1, where it can: the header is always of version 2. */
  readonly v1: boolean
  /**
   * Another redelivery token at each call. It tells the buyer from an observer of the chain, who can rebuild a settled
   * payment from its public calldata: stock clients copy the extension into their payload, and a stored answer is given
   * again only with it.
   */
  readonly nextToken: () => string
}

/** A challenge that can be shown to facilitators. */
interface ListedChallenge extends Challenge {
  readonly listing: Listing
}

/**
 * The 402 of one endpoint (x402 v2 core §5.1): everything that is the same for all requests is serialised here once;
 * a request adds its URL, the reason and a random token.
 */
export function createChallenge(
  endpoint: Endpoint,
  price: Micros,
  settings: ChallengeSettings,
): ListedChallenge {
  const { accepts, example, fit: fitPlain } = draftsOf(endpoint, price, settings)
  const offered = extensionsOf(settings.offers, accepts)
  const recent = settings.recent ?? (() => NONE)
  const draftsWith = (corrections: readonly CorrectedOffer[]): Drafts =>
    draftsOf(endpoint, price, corrected(settings, corrections))
  // Documents need no header, and the thread that renders them makes a challenge of every route.
  const plain = once(fitPlain)
  let drawn: { readonly with: readonly CorrectedOffer[]; readonly draft: Draft } | undefined
  /** The same draft until what it names of the moment changes. That is left out where there is no room for it. */
  const draft = (): Draft => {
    const named = recent()
    if (named.length === 0) return plain()
    if (drawn !== undefined && isSame(drawn.with, named)) return drawn.draft
    const { draw, fit } = draftsWith(named)
    const again = drawn && draw(drawn.draft.detail)
    const made = again !== undefined && again.headerBytes <= HEADER_TARGET ? again : fit()
    drawn = { with: named, draft: made.headerBytes <= HEADER_TARGET ? made : plain() }
    return drawn.draft
  }
  // No header limits a listing.
  const listed = resourceOf(endpoint, settings, COMPLETE)
  const listing = bazaarExtension(endpoint, COMPLETE)
  return {
    issue: ({ resource: url, error, reoffer }) => {
      const used = reoffer === undefined ? draft() : draftsWith([reoffer]).fit()
      return used.write(url, error, settings.nextToken())
    },
    demand: ({ resource: url, error, reoffer }) => {
      const redelivery = { info: { token: settings.nextToken() }, schema: TOKEN_SCHEMA }
      // The tool list has the schemas, and facilitators get the listing from us.
      const paymentRequired = {
        x402Version: 2,
        error,
        resource: {
          url,
          description: describe(endpoint, COMPLETE),
          mimeType: JSON_MEDIA,
          serviceName: settings.service.name,
        },
        accepts: draftsWith([...recent(), ...(reoffer === undefined ? [] : [reoffer])]).accepts.map(publish),
        extensions: { ...offered, [IDENTIFIER]: IDENTIFIER_EXTENSION, redelivery },
      }
      // Transport MCP: both bindings, and the place where some clients look for the first.
      return {
        content: paymentRequired,
        meta: { 'x402/error': { ...paymentRequired, resource: { url }, extensions: { redelivery } } },
        extension: { name: MCP_EXTENSION, result: { resultType: 'payment_required', paymentRequired } },
      }
    },
    published: {
      x402Version: 2,
      resource: { url: example, ...listed },
      accepts: accepts.map(publish),
      extensions: { ...offered, bazaar: listing, [IDENTIFIER]: IDENTIFIER_EXTENSION },
    },
    get headerBytes() {
      return draft().headerBytes
    },
    listing: { operation: endpoint.operation.id, resource: listed, extensions: { bazaar: listing } },
  }
}

/** The extensions of the offers that are made. */
function extensionsOf(offers: readonly NetworkOffer[], accepts: readonly Requirements[]): JsonObject {
  const made = offers.filter((offer) =>
    accepts.some(({ scheme, network }) => scheme === offer.scheme && network === offer.network),
  )
  return Object.fromEntries(made.flatMap(({ extensions = {} }) => Object.entries(extensions)))
}

const NONE: readonly CorrectedOffer[] = []

function isSame(some: readonly CorrectedOffer[], others: readonly CorrectedOffer[]): boolean {
  return some.length === others.length && some.every((each, place) => each === others[place])
}

/** The settings with offers that a scheme has corrected: for the moment, or for one payer. */
function corrected(settings: ChallengeSettings, corrections: readonly CorrectedOffer[]): ChallengeSettings {
  if (corrections.length === 0) return settings
  const offers = settings.offers.map((offer) => {
    const own = corrections.filter(
      ({ scheme, network }) => offer.scheme === scheme && offer.network === network,
    )
    return { ...offer, extra: Object.assign({ ...offer.extra }, ...own.map(({ extra }) => extra)) }
  })
  return { ...settings, offers }
}

type Write = (token: string) => IssuedChallenge

/** A challenge with one level of detail, and the size of its header. */
interface Draft {
  readonly detail: Detail
  readonly write: (url: string, error: string, token: string) => IssuedChallenge
  readonly headerBytes: number
}

interface Drafts {
  readonly accepts: readonly Requirements[]
  /** URL of the example request. */
  readonly example: string
  readonly draw: (detail: Detail) => Draft
  /** The draft with the most detail that stays within the header target. */
  readonly fit: () => Draft
}

function draftsOf(endpoint: Endpoint, price: Micros, settings: ChallengeSettings): Drafts {
  const { operation } = endpoint
  const kind = priceKindOf(endpoint)
  const accepts = settings.offers
    .filter(({ prices }) => prices.includes(kind))
    .map((offer) => requirementsOf(offer, price, settleOrderOf(offer, operation)))
  const example = endpoint.kind === 'tool' ? endpoint.url : settings.baseUrl + examplePath(endpoint)
  const draw = (detail: Detail): Draft => drawDraft(endpoint, accepts, settings, example, detail)
  const fit = (): Draft => {
    for (const detail of detailsOf(endpoint)) {
      const draft = draw(detail)
      if (draft.headerBytes <= HEADER_TARGET) return draft
    }
    return draw(LEAST)
  }
  return { accepts, example, draw, fit }
}

function drawDraft(
  endpoint: Endpoint,
  accepts: readonly Requirements[],
  settings: ChallengeSettings,
  example: string,
  detail: Detail,
): Draft {
  const resource = resourceOf(endpoint, settings, detail)
  const bazaar = bazaarExtension(endpoint, detail)
  // A described resource holds one member at least: its URL is put before it.
  const described = JSON.stringify(resource).slice(1)
  const offered = extensionsOf(settings.offers, accepts)
  const extensions = JSON.stringify({ ...offered, bazaar, [IDENTIFIER]: IDENTIFIER_EXTENSION }).slice(0, -1)
  const standing = `,${described},"accepts":${JSON.stringify(accepts)},"extensions":${extensions},"redelivery":{"info":{"token":"`
  const closing = `"},"schema":${JSON.stringify(TOKEN_SCHEMA)}}}`
  const bodyInV1 = settings.v1 && accepts.some(isOfferedInV1) ? v1Members(endpoint, accepts) : undefined
  const ascii = once(() => escapeNonAscii(standing))
  const opening = (url: string, error: string): string =>
    `"x402Version":2,"error":${JSON.stringify(error)},"resource":{"url":${JSON.stringify(url)}`
  const prepare = (url: string, error: string): Write => {
    const before = opening(url, error)
    const encode = encodeAfter(`{${before}${standing}`)
    const older = bodyInV1?.(url, error)
    const members = older === undefined ? escapeNonAscii(before) + ascii() : ''
    return (token) => {
      const after = token + closing
      return { headers: { 'PAYMENT-REQUIRED': encode(`${after}}`) }, members: older ?? members + after }
    }
  }
  // Arguments are in the query or the body as a rule: one URL is asked for again and again.
  let last: { readonly url: string; readonly error: string; readonly write: Write } | undefined
  const write = (url: string, error: string, token: string): IssuedChallenge => {
    if (last?.url !== url || last.error !== error) last = { url, error, write: prepare(url, error) }
    return last.write(token)
  }
  const bytes = Buffer.byteLength(`{${opening(example, LONGEST_CODE)}${standing}${closing}}`) + TOKEN_LENGTH
  return { detail, write, headerBytes: 4 * Math.ceil(bytes / 3) }
}

/** The members of a body that offers version 1. */
function v1Members(
  endpoint: Endpoint,
  accepts: readonly Requirements[],
): (url: string, error: string) => string {
  const { summary, operation } = endpoint
  const about = {
    description: shortenAtWord(summary, LONGEST_DESCRIPTION),
    mimeType: mediaTypeOf(endpoint),
    method: endpoint.kind === 'tool' ? undefined : operation.method,
  }
  return (url, error) =>
    asciiJson({ x402Version: 1, error, accepts: offersInV1(accepts, { ...about, url }) }).slice(1, -1)
}

/** The longest reason a 402 gives. */
const LONGEST_CODE = Object.entries(ERRORS)
  .filter(([, { status }]) => status === 402)
  .map(([code]) => code)
  .reduce((a, b) => (b.length > a.length ? b : a))

function publish(requirements: Requirements): JsonObject {
  const { scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra } = requirements
  return { scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra: extra ?? {} }
}

/** Limit in a header; the largest registry refuses more than 500 characters. */
const LONGEST_DESCRIPTION = 200

/** What the endpoint does and when to use it. */
function describe({ summary, operation: { useWhen } }: Endpoint, { text }: Detail): string {
  const whole =
    text === 0 || useWhen === undefined ? summary : `${summary}. ${conditionOf(spellPaths(useWhen))}`
  return shortenAtWord(whole, Math.max(LONGEST_DESCRIPTION, text))
}

function resourceOf(endpoint: Endpoint, { service, baseUrl }: ChallengeSettings, detail: Detail): JsonObject {
  const { category } = endpoint.operation
  // A server for tools may be about something else than the service.
  const tags = endpoint.kind === 'tool' ? [category ?? endpoint.tool.server] : service.tags
  return compact({
    description: describe(endpoint, detail),
    mimeType: mediaTypeOf(endpoint),
    serviceName: service.name,
    tags: tags.length > 0 && reaches(detail, 'tagged') ? tags : undefined,
    iconUrl: detail.hasIcon ? iconUrl(service, baseUrl) : undefined,
  })
}

function mediaTypeOf({ kind, operation: { response } }: Endpoint): string {
  return kind === 'tool' ? JSON_MEDIA : (response.mediaType ?? JSON_MEDIA)
}

/** Every address has this length. */
const ANY_ADDRESS: Address = `0x${'0'.repeat(40)}`
/** The longest address of Solana. */
const ANY_SVM_ADDRESS = 'z'.repeat(44)

interface MeasuredRoute extends Drafts {
  readonly key: string
}

/** The paid routes, as if all networks of the catalog were offered. */
function measuredRoutes(
  { payments: { x402 }, service, routes }: Catalog,
  baseUrl: string,
): readonly MeasuredRoute[] {
  if (x402 === undefined) return []
  const terms = { timeoutSeconds: Math.floor(x402.timeout / 1000), testnet: x402.testnet }
  const isExact = x402.schemes.includes('exact')
  const networks = x402.networks
    .flatMap((id) => findNetwork(id) ?? [])
    .map((network) => ({ ...terms, network, payTo: ANY_ADDRESS }))
  // Channels are offered on one network.
  const channels = x402.schemes.includes('batch-settlement') ? networks.slice(0, 1) : []
  const { withdrawDelay, leastDeposit, depositBy } = x402.channels
  const offers = [
    ...channels.map((accepted) => {
      const least = toAtomic(leastDeposit, accepted.network.token.decimals)
      return channelOffer(accepted, ANY_ADDRESS, { withdrawDelay, leastDeposit: least, depositBy })
    }),
    ...networks.flatMap((accepted) => [
      ...(isExact ? [offerOf(accepted)] : []),
      uptoOffer(
        accepted,
        ANY_ADDRESS,
        x402.schemes.includes('upto') ? ['fixed', 'metered'] : ['metered'],
        'sent along',
      ),
    ]),
    ...(isExact ? x402.networks : [])
      .flatMap((id) => findSvmNetwork(id) ?? [])
      .map((network) => svmOfferOf({ ...terms, network, payTo: ANY_SVM_ADDRESS, feePayer: ANY_SVM_ADDRESS })),
  ]
  const settings = { service, baseUrl, offers, v1: false, nextToken: () => '' }
  return routes.flatMap((route): MeasuredRoute[] => {
    const { price } = route.operation
    if (route.kind !== 'paid' || price === undefined) return []
    return [{ key: routeKey(route), ...draftsOf(route, highestOf(price), settings) }]
  })
}

/** How many bytes the PAYMENT-REQUIRED of each paid route takes, were all networks of the catalog offered. */
export function measureHeaders(catalog: Catalog, baseUrl: string): ReadonlyMap<string, number> {
  return new Map(measuredRoutes(catalog, baseUrl).map(({ key, fit }) => [key, fit().headerBytes]))
}

/** Routes whose PAYMENT-REQUIRED remains too large after all optional parts are omitted. */
export function checkHeaderBudget(
  catalog: Catalog,
  {
    baseUrl,
    at,
  }: {
    readonly baseUrl: string
    /** Position of a route in the file, by its path. */
    readonly at: (path: string) => Position
  },
): Issue[] {
  // The least is measured first: one measurement instead of twenty shows that a header can be small enough.
  return measuredRoutes(catalog, baseUrl).flatMap(({ key, draw, fit }) =>
    draw(LEAST).headerBytes <= HEADER_TARGET ? [] : (headerIssue(fit().headerBytes, at(key)) ?? []),
  )
}

/** The issue of a header of this size; undefined while it is small enough. */
export function headerIssue(bytes: number, position: Position): Issue | undefined {
  if (bytes <= HEADER_TARGET) return undefined
  const said = `its PAYMENT-REQUIRED header takes ${bytes} bytes`
  const advice =
    'offer fewer networks or schemes, shorten the example of its longest parameter, or take fewer parameters'
  return bytes > HEADER_LIMIT
    ? error('header_too_large', position, `${said}, and proxies refuse more than ${HEADER_LIMIT}: ${advice}`)
    : warning(
        'header_large',
        position,
        `${said}; above ${HEADER_TARGET} a 402 may exceed the 4 KB of headers that proxies pass on: ${advice}`,
      )
}
