import type { Route, Service } from '../../catalog/catalog.ts'
import { compact, type JsonObject } from '../../json.ts'
import { toAtomic, type Micros } from '../../money.ts'
import type { Network } from '../../networks.ts'
import type { Challenge } from '../protocol.ts'
import { frameBase64 } from './base64.ts'
import { bazaarExtension, examplePath, type Detail } from './bazaar.ts'
import type { Requirements } from './payload.ts'
import { TOKEN_LENGTH, TOKEN_SCHEMA } from './redelivery.ts'

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
export function requirementsOf({ network, payTo, timeoutSeconds }: Till, price: Micros): Requirements {
  const { token } = network
  return {
    scheme: 'exact',
    network: network.id,
    amount: toAtomic(price, token.decimals).toString(),
    asset: token.address,
    payTo,
    maxTimeoutSeconds: timeoutSeconds,
    extra: { name: token.name, version: token.version },
  }
}

export interface ChallengeSettings {
  readonly service: Service
  readonly baseUrl: string
  readonly tills: readonly Till[]
  /** Another redelivery token at each call. */
  readonly nextToken: () => string
}

/**
 * What a 402 of one route says (x402 v2 core §5.1): everything that does not change between requests is serialised
 * here, once; a request adds its URL, the reason and a random token.
 */
export function createChallenge(route: Route, price: Micros, settings: ChallengeSettings): Challenge {
  const accepts = settings.tills.map((till) => requirementsOf(till, price))
  const detail = fit(route, accepts, settings)
  const resource = resourceOf(route, settings.service, detail)
  const bazaar = bazaarExtension(route, detail)
  // A described resource holds one member at least: its URL is put before it.
  const described = JSON.stringify(resource).slice(1)
  const standing = `,${described},"accepts":${JSON.stringify(accepts)},"extensions":{"bazaar":${JSON.stringify(bazaar)},"redelivery":{"info":{"token":"`
  const closing = `"},"schema":${JSON.stringify(TOKEN_SCHEMA)}}}`
  const opening = (url: string, error: string): string =>
    `"x402Version":2,"error":${JSON.stringify(error)},"resource":{"url":${JSON.stringify(url)}`
  const frame = frameBase64(standing)
  const write = (url: string, error: string, token: string) => {
    const before = opening(url, error)
    const after = token + closing
    return {
      headers: { 'PAYMENT-REQUIRED': frame(`{${before}`, `${after}}`) },
      members: before + standing + after,
    }
  }
  const example = settings.baseUrl + examplePath(route)
  return {
    issue: ({ resource: url, error }) => write(url, error, settings.nextToken()),
    published: {
      x402Version: 2,
      resource: { url: example, ...resource },
      accepts: accepts.map(publish),
      extensions: { bazaar },
    },
    headerBytes: write(example, 'payment_required', 'x'.repeat(TOKEN_LENGTH)).headers['PAYMENT-REQUIRED']
      .length,
  }
}

function publish(requirements: Requirements): JsonObject {
  const { scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra } = requirements
  return { scheme, network, amount, asset, payTo, maxTimeoutSeconds, extra: extra ?? {} }
}

const LONGEST_DESCRIPTION = 200

function resourceOf(route: Route, service: Service, detail: Detail): JsonObject {
  const words = [route.summary, route.operation.useWhen].filter((text) => text !== undefined)
  const description = detail === 'full' ? words.join('. ') : route.summary
  return compact({
    description: [...description].slice(0, LONGEST_DESCRIPTION).join(''),
    mimeType: 'application/json',
    serviceName: service.name,
    tags: service.tags.length === 0 ? undefined : service.tags,
  })
}

/** The most detail that stays within the header target. */
function fit(route: Route, accepts: readonly Requirements[], settings: ChallengeSettings): Detail {
  const rest = JSON.stringify({ accepts }).length + examplePath(route).length + settings.baseUrl.length + 160
  const bytes = (detail: Detail): number => {
    const spoken = JSON.stringify([
      resourceOf(route, settings.service, detail),
      bazaarExtension(route, detail),
    ])
    return Math.ceil((rest + Buffer.byteLength(spoken)) / 3) * 4
  }
  return (['full', 'plain', 'outline'] as const).find((detail) => bytes(detail) <= HEADER_TARGET) ?? 'outline'
}
