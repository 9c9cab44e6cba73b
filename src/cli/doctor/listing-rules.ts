import { countOf } from '../../engine/base/words.ts'
import type { Json, JsonObject } from '../../engine/base/json.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import type { CheckResult } from './check-result.ts'
import type { Visit } from './visit.ts'

/** A service as the probes of registries see it. */
export interface ProbedService {
  readonly origin: string
  readonly openapi: JsonObject
  /** Operations of the OpenAPI document, free ones and documents too. */
  readonly operations: number
  readonly sold: readonly ProbedOperation[]
  /** Reports of facilitators about its listings, from its `/status.json`. */
  readonly listings: readonly Json[]
  readonly favicon: Visit
  readonly mcpRegistryAuth: Visit
}

export interface ProbedOperation {
  /** Method and path, as the OpenAPI document has them. */
  readonly name: string
  readonly declared: Json
  /** A request without query and body, with examples in the path, and one to the template itself. */
  readonly bare: Visit
  readonly template: Visit
  /** PAYMENT-REQUIRED of the first, decoded. */
  readonly challenge: Json | undefined
}

export interface Rule {
  readonly registry: string
  readonly level: 'warn' | 'fails'
  /** What is wrong, and what to do about it. */
  readonly message: string
  /** Names of the affected operations, or the value that was found; empty texts are not printed. */
  readonly broken: (service: ProbedService) => readonly string[]
}

const X402SCAN = 'x402scan'
const AGENTCASH = 'AgentCash'
const BAZAAR = 'Bazaar'
const MPP = 'MPP registries'
const MCP = 'MCP registry'

/**
 * What keeps a registry from listing a service, or makes an entry poor: `docs/listing.md` says where each comes from.
 */
export const RULES: readonly Rule[] = [
  {
    registry: X402SCAN,
    level: 'fails',
    message: 'only public https origins are taken: set BASE_URL and serve behind TLS',
    broken: ({ origin }) => (origin.startsWith('https:') && !TUNNEL.test(origin) ? [] : [origin]),
  },
  {
    registry: X402SCAN,
    level: 'fails',
    message: 'does not answer 402 to a request without parameters, or to the template of its path',
    broken: operationsWhere(({ bare, template }) => !is402(bare) || !is402(template)),
  },
  {
    registry: X402SCAN,
    level: 'fails',
    message: 'neither Base nor Solana is offered: add base to payments.x402.networks',
    broken: operationsWhere(
      ({ challenge }) =>
        !listAt(challenge, 'accepts').some((accepted) =>
          LISTED_NETWORKS.has(textAt(accepted, 'network') ?? ''),
        ),
    ),
  },
  {
    registry: X402SCAN,
    level: 'fails',
    message: 'guidance of 1 to 4,000 characters is needed: write service.guidance',
    broken: ({ openapi }) => {
      const { length } = textAt(openapi, 'info', 'x-guidance') ?? ''
      return length > 0 && length <= 4_000 ? [] : ['']
    },
  },
  {
    registry: X402SCAN,
    level: 'warn',
    message: 'no contact, which proves that the entry is yours: write service.contact',
    broken: ({ openapi }) => (at(openapi, 'info', 'contact') === undefined ? [''] : []),
  },
  {
    registry: AGENTCASH,
    level: 'warn',
    message: 'more than 40 operations: it warns, and drops none',
    broken: ({ operations }) => (operations > 40 ? [String(operations)] : []),
  },
  {
    registry: AGENTCASH,
    level: 'fails',
    message: 'no summary, security or 402 response in the OpenAPI document',
    broken: operationsWhere(
      ({ declared }) =>
        textAt(declared, 'summary') === undefined ||
        at(declared, 'security') === undefined ||
        at(declared, 'responses', '402') === undefined,
    ),
  },
  {
    registry: AGENTCASH,
    level: 'fails',
    message: 'payment headers of more than 8 KB: shorten the summary and the parameter descriptions',
    broken: operationsWhere(({ bare }) => headerBytes(bare) > 8_192),
  },
  {
    registry: AGENTCASH,
    level: 'warn',
    message: 'no icon: this is no image',
    broken: ({ favicon }) =>
      favicon.kind === 'answer' && favicon.status === 200 && favicon.type.startsWith('image/')
        ? []
        : ['/favicon.ico'],
  },
  {
    registry: BAZAAR,
    level: 'fails',
    message: 'no bazaar extension in the 402: give every required parameter an example',
    broken: operationsWhere(({ challenge }) => at(challenge, 'extensions', 'bazaar', 'info') === undefined),
  },
  {
    registry: BAZAAR,
    level: 'fails',
    message: 'description of more than 500 characters: shorten summary and use_when',
    broken: operationsWhere(
      ({ challenge }) => (textAt(challenge, 'resource', 'description') ?? '').length > 500,
    ),
  },
  {
    registry: BAZAAR,
    level: 'fails',
    message: 'name of the service longer than 32 characters or not ASCII, or more than five tags',
    broken: operationsWhere(({ challenge }) => {
      const name = textAt(challenge, 'resource', 'serviceName') ?? ''
      return !/^[ -~]{0,32}$/.test(name) || listAt(challenge, 'resource', 'tags').length > 5
    }),
  },
  {
    registry: BAZAAR,
    level: 'fails',
    message: 'the address in the offer holds a template: give the path parameters examples',
    broken: operationsWhere(({ challenge }) => /\{|%7B/i.test(textAt(challenge, 'resource', 'url') ?? '')),
  },
  {
    registry: BAZAAR,
    level: 'warn',
    message: 'price below 0.001 USD, the least that the facilitator of Coinbase settles',
    broken: operationsWhere(
      ({ declared }) => Number(textAt(declared, 'x-payment-info', 'price', 'amount') ?? 1) < 0.001,
    ),
  },
  {
    registry: BAZAAR,
    level: 'warn',
    message: 'challenges of more than 4,096 bytes of headers, which common proxies drop',
    broken: operationsWhere(({ bare }) => headerBytes(bare) > 4_096),
  },
  {
    registry: BAZAAR,
    level: 'fails',
    message: 'a facilitator rejects the listing',
    broken: ({ listings }) =>
      listings
        .filter((each) => textAt(each, 'status') === 'rejected')
        .map(
          (each) =>
            `${textAt(each, 'operation')} by ${textAt(each, 'facilitator')}: ${textAt(each, 'reason') ?? 'no reason given'}`,
        ),
  },
  {
    registry: BAZAAR,
    level: 'warn',
    message:
      'no facilitator has reported a listing yet: a route is listed when a payment for it settles there',
    broken: ({ listings }) => (listings.length === 0 ? [''] : []),
  },
  {
    registry: MPP,
    level: 'warn',
    message: 'MPP is not offered: add payments.mpp to the catalog',
    broken: ({ sold }) => (sold.some(offersMpp) ? [] : ['']),
  },
  {
    registry: MPP,
    level: 'fails',
    message: 'incomplete or unquoted WWW-Authenticate: Payment',
    broken: operationsWhere(
      (operation) =>
        offersMpp(operation) &&
        CHALLENGE_MEMBERS.some(
          (name) => !new RegExp(`[ ,]${name}="[^"]+"`).test(headerOf(operation.bare, 'www-authenticate')),
        ),
    ),
  },
  {
    registry: MPP,
    level: 'fails',
    message: 'the challenge names MPP, and x-payment-info in the OpenAPI document does not',
    broken: operationsWhere(
      (operation) =>
        offersMpp(operation) &&
        !listAt(operation.declared, 'x-payment-info', 'protocols').some(
          (each) => membersAt(each, 'mpp').length > 0,
        ),
    ),
  },
  {
    registry: MCP,
    level: 'warn',
    message: 'names of your domain cannot be published before service.mcp_registry_auth is set',
    broken: ({ mcpRegistryAuth }) =>
      mcpRegistryAuth.kind === 'answer' &&
      mcpRegistryAuth.status === 200 &&
      /^v=MCPv1; k=(?:ed25519|ecdsap384); p=[A-Za-z0-9+/=]+\s*$/.test(mcpRegistryAuth.text)
        ? []
        : ['/.well-known/mcp-registry-auth'],
  },
]

/** Hosts of tunnels come and go: registries refuse them. */
const TUNNEL = /\.(?:ngrok(?:-free)?\.(?:app|dev|io)|trycloudflare\.com|loca\.lt)(?::|$)/

/** CAIP-2 of Base and of Solana. */
const LISTED_NETWORKS: ReadonlySet<string> = new Set([
  'eip155:8453',
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
])

/** Members that an AgentCash probe expects in a challenge of the Payment authentication scheme. */
const CHALLENGE_MEMBERS = ['id', 'realm', 'method', 'intent', 'expires', 'request']

/** Names of the operations that break a rule. */
function operationsWhere(isBroken: (operation: ProbedOperation) => boolean): Rule['broken'] {
  return ({ sold }) => sold.filter((operation) => isBroken(operation)).map(({ name }) => name)
}

function is402(visited: Visit): boolean {
  return visited.kind === 'answer' && visited.status === 402
}

function headerOf(visited: Visit, name: string): string {
  return visited.kind === 'answer' ? (visited.headers.get(name) ?? '') : ''
}

/** The two headers that grow with a route. */
function headerBytes(visited: Visit): number {
  return headerOf(visited, 'payment-required').length + headerOf(visited, 'www-authenticate').length
}

function offersMpp({ bare }: ProbedOperation): boolean {
  return /^Payment /i.test(headerOf(bare, 'www-authenticate'))
}

/** Most places that are named of those that break a rule. */
const NAMED = 3

/** One result for each violated rule, and one for each registry whose rules all hold. */
export function checkListing(service: ProbedService): CheckResult[] {
  const registries = [...new Set(RULES.map(({ registry }) => registry))]
  return registries.flatMap((registry): CheckResult[] => {
    const broken = RULES.filter((rule) => rule.registry === registry).flatMap((rule): CheckResult[] => {
      const places = rule.broken(service)
      const { level, message } = rule
      return places.length === 0 ? [] : [{ level, subject: registry, message: message + named(places) }]
    })
    if (broken.length > 0) return broken
    return [
      {
        level: 'ok',
        subject: registry,
        message: `${countOf(service.sold.length, 'operation')} can be listed`,
      },
    ]
  })
}

function named(places: readonly string[]): string {
  const more = places.length > NAMED ? ` and ${places.length - NAMED} more` : ''
  const shown = places.slice(0, NAMED).join(', ') + more
  return shown === '' ? '' : ` (${shown})`
}
