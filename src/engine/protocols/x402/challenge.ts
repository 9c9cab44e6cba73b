import { examplePath, type Face, type Operation, type Service } from '../../catalog/catalog.ts'
import { ERRORS } from '../../errors.ts'
import { compact, escapeNonAscii, type JsonObject } from '../../json.ts'
import { toAtomic, type Micros } from '../../money.ts'
import type { Network } from '../../networks.ts'
import type { Challenge, IssuedChallenge } from '../protocol.ts'
import { TOKEN_LENGTH } from '../tokens.ts'
import { frameBase64 } from './base64.ts'
import { bazaarExtension, detailsOf, type Detail } from './bazaar.ts'
import { IDENTIFIER, IDENTIFIER_EXTENSION } from './identifier.ts'
import type { Requirements } from './payload.ts'
import { demandOf } from './tool-binding.ts'

/** One network money is taken on. */
export interface Till {
  readonly network: Network
  /** EIP-55. */
  readonly payTo: string
  /** Seconds a signed payment is valid. */
  readonly timeoutSeconds: number
}

/** Bytes of PAYMENT-REQUIRED: some facilitators fail silently above the first, proxies drop the answer above the second. */
export const HEADER_TARGET = 2_900
export const HEADER_LIMIT = 4_096

/** The offer of `price` in one network’s token. */
export function requirementsOf(till: Till, price: Micros, settle: Operation['settle']): Requirements {
  return offerOf(till, toAtomic(price, till.network.token.decimals).toString(), settle)
}

/** The offer of an amount in atomic units. The usual flow goes unsaid, as the official SDK has it. */
export function offerOf(
  { network, payTo, timeoutSeconds }: Till,
  amount: string,
  settle: Operation['settle'],
): Requirements {
  const { token } = network
  return {
    scheme: 'exact',
    network: network.id,
    amount,
    asset: token.address,
    payTo,
    maxTimeoutSeconds: timeoutSeconds,
    extra: {
      name: token.name,
      version: token.version,
      ...(settle === 'upfront' ? { paymentFlow: 'upfront' } : {}),
    },
  }
}

const TOKEN_SCHEMA = { type: 'object' }

export interface ChallengeSettings {
  readonly service: Service
  readonly baseUrl: string
  readonly tills: readonly Till[]
  /**
   * Another redelivery token at each call. It tells the buyer from an observer of the chain, who can rebuild a settled
   * payment from its public calldata: stock clients copy the extension into their payload, and a stored answer is given
   * again only with it.
   */
  readonly nextToken: () => string
}

/** What a facilitator may list a route by: the members of its 402 that a payment repeats. */
export interface Listing {
  /** Without its URL. */
  readonly resource: JsonObject
  readonly extensions: JsonObject
}

/** A challenge that can be shown to facilitators. */
export interface ListedChallenge extends Challenge {
  readonly listing: Listing
}

/**
 * What a 402 of one face says (x402 v2 core §5.1): everything that does not change between requests is serialised
 * here, once; a request adds its URL, the reason and a random token.
 */
export function createChallenge(face: Face, price: Micros, settings: ChallengeSettings): ListedChallenge {
  const accepts = settings.tills.map((till) => requirementsOf(till, price, face.operation.settle))
  const example = face.kind === 'tool' ? face.url : settings.baseUrl + examplePath(face)
  const { write, resource, bazaar, headerBytes } = fit(face, accepts, settings.service, example)
  return {
    issue: ({ resource: url, error }) => write(url, error, settings.nextToken()),
    demand: ({ resource: url, error }) => {
      const redelivery = { info: { token: settings.nextToken() }, schema: TOKEN_SCHEMA }
      return demandOf({
        x402Version: 2,
        error,
        resource: { url, ...resource },
        accepts: accepts.map(publish),
        extensions: { bazaar, [IDENTIFIER]: IDENTIFIER_EXTENSION, redelivery },
      })
    },
    published: {
      x402Version: 2,
      resource: { url: example, ...resource },
      accepts: accepts.map(publish),
      extensions: { bazaar, [IDENTIFIER]: IDENTIFIER_EXTENSION },
    },
    headerBytes,
    listing: { resource, extensions: { bazaar } },
  }
}

/** One wording of a challenge, and how large its header gets. */
interface Draft {
  readonly write: (url: string, error: string, token: string) => IssuedChallenge
  readonly resource: JsonObject
  readonly bazaar: JsonObject
  readonly headerBytes: number
}

/** The most detail that stays within the header target. */
function fit(face: Face, accepts: readonly Requirements[], service: Service, example: string): Draft {
  let draft: Draft | undefined
  for (const detail of detailsOf(face)) {
    draft = draw(face, accepts, service, example, detail)
    if (draft.headerBytes <= HEADER_TARGET) break
  }
  if (draft === undefined) throw new Error('a face has at least one detail')
  return draft
}

function draw(
  face: Face,
  accepts: readonly Requirements[],
  service: Service,
  example: string,
  detail: Detail,
): Draft {
  const resource = resourceOf(face, service, detail)
  const bazaar = bazaarExtension(face, detail)
  // A described resource holds one member at least: its URL is put before it.
  const described = JSON.stringify(resource).slice(1)
  const extensions = JSON.stringify({ bazaar, [IDENTIFIER]: IDENTIFIER_EXTENSION }).slice(0, -1)
  const standing = `,${described},"accepts":${JSON.stringify(accepts)},"extensions":${extensions},"redelivery":{"info":{"token":"`
  const closing = `"},"schema":${JSON.stringify(TOKEN_SCHEMA)}}}`
  const frame = frameBase64(standing)
  const ascii = escapeNonAscii(standing)
  const write = (url: string, error: string, token: string): IssuedChallenge => {
    const before = `"x402Version":2,"error":${JSON.stringify(error)},"resource":{"url":${JSON.stringify(url)}`
    const after = token + closing
    return {
      headers: { 'PAYMENT-REQUIRED': frame(`{${before}`, `${after}}`) },
      members: before + ascii + after,
    }
  }
  const longest = write(example, LONGEST_CODE, 'x'.repeat(TOKEN_LENGTH)).headers['PAYMENT-REQUIRED']
  return { write, resource, bazaar, headerBytes: longest?.length ?? 0 }
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

const LONGEST_DESCRIPTION = 200

function resourceOf(face: Face, service: Service, detail: Detail): JsonObject {
  const words = [face.summary, face.operation.useWhen].filter((text) => text !== undefined)
  const description = detail.input === 'full' ? words.join('. ') : face.summary
  return compact({
    description: Array.from(description).slice(0, LONGEST_DESCRIPTION).join(''),
    mimeType: 'application/json',
    serviceName: service.name,
    tags: service.tags.length === 0 || detail.input === 'bare' ? undefined : service.tags,
  })
}
