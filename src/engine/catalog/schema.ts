import { STATUS_KINDS } from './catalog.ts'
import { defaults, headerName, type parameters, routes, tools } from './schema-route.ts'

/**
 * The type of the values that a JSON Schema describes, for the few keywords that the catalog's schema uses: the
 * compiler derives its types from the schema, so that the shape is written once.
 */
type Shape<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly type: infer T }
      ? T extends readonly (infer U)[]
        ? OfType<U, S>
        : OfType<T, S>
      : unknown

type OfType<T, S> = T extends 'string'
  ? string
  : T extends 'integer' | 'number'
    ? number
    : T extends 'boolean'
      ? boolean
      : T extends 'array'
        ? S extends { readonly items: infer I }
          ? readonly Shape<I>[]
          : readonly unknown[]
        : T extends 'object'
          ? ObjectShape<S>
          : never

type ObjectShape<S> = S extends { readonly properties: infer P }
  ? { readonly [K in keyof P as K extends Required<S> ? K : never]: Shape<NonNullable<P[K]>> } & {
      readonly [K in keyof P as K extends Required<S> ? never : K]?: Shape<NonNullable<P[K]>>
    }
  : S extends { readonly additionalProperties: infer A }
    ? A extends false
      ? Record<never, never>
      : { readonly [key: string]: Shape<A> }
    : { readonly [key: string]: unknown }

type Required<S> = S extends { readonly required: readonly (infer R)[] } ? R : never

const text = { type: 'string', minLength: 1 } as const
const webAddress = { type: 'string', pattern: '^https?://[^\\s<>"]+$' } as const
const email = { type: 'string', pattern: '^[^\\s<>@]+@[^\\s<>@]+$' } as const

const service = {
  type: 'object',
  description: 'The seller and the service.',
  additionalProperties: false,
  required: ['name', 'version'],
  properties: {
    name: {
      type: 'string',
      minLength: 1,
      maxLength: 32,
      pattern: '^[ -~]+$',
      description: 'At most 32 printable ASCII characters: wallets show it when they pay.',
    },
    version: { ...text, description: 'Version of the interface; quote it: "1.0.0".' },
    description: { ...text, description: 'One paragraph: what is sold, to whom, from which data.' },
    guidance: {
      ...text,
      maxLength: 4000,
      description: 'How an agent should use the routes: order of calls, cheapest route for each intent.',
    },
    tags: {
      type: 'array',
      maxItems: 5,
      description: 'At most five short words for listings.',
      items: { type: 'string', minLength: 1, maxLength: 32, pattern: '^[ -~]+$' },
    },
    icon: {
      type: 'string',
      pattern: '^(https?:/)?/[^\\s<>"]+$',
      description: 'Picture for listings and wallets: a path under files, or an address.',
    },
    contact: {
      type: 'object',
      additionalProperties: false,
      properties: { email, url: webAddress },
    },
    provider: {
      type: 'object',
      additionalProperties: false,
      required: ['organization', 'url'],
      properties: { organization: text, url: webAddress },
    },
    license: {
      type: 'object',
      description: 'Licence of the interface: an SPDX identifier, or the address of its text.',
      additionalProperties: false,
      required: ['name'],
      properties: { name: text, identifier: text, url: webAddress },
    },
    ownership_proofs: {
      type: 'array',
      minItems: 1,
      description:
        'Signatures over your origin by the key of the receiving address, for listings that require them.',
      items: text,
    },
    mcp_registry_auth: {
      ...text,
      description: 'Proof of your domain for the MCP registry, quoted: "v=MCPv1; k=ed25519; p=…".',
    },
    card_version: {
      ...text,
      description: 'Version of the agent card, if it differs from that of the service.',
    },
    updated: {
      type: 'string',
      pattern: '^\\d{4}-\\d{2}-\\d{2}$',
      description: 'Date of the last change, quoted: "2026-11-20".',
    },
  },
} as const

const mcpServers = {
  type: 'object',
  description: 'Companion MCP servers by name; routes and tools name one.',
  propertyNames: { pattern: '^[a-z][a-z0-9_-]*$' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['title'],
    properties: { title: text, description: text },
  },
} as const

const categories = {
  type: 'object',
  description: 'Categories by id, with their titles.',
  propertyNames: { pattern: '^[a-z][a-z0-9-]*$' },
  additionalProperties: text,
} as const

const crawlers = {
  type: 'object',
  description: 'Rules for crawlers in robots.txt.',
  additionalProperties: false,
  properties: {
    paid: {
      enum: ['allow', 'disallow'],
      description: 'Whether crawlers may request paid routes. Default: disallow.',
    },
    training: {
      enum: ['allow', 'disallow'],
      description: 'Whether free content may be used to train models. Default: no statement.',
    },
  },
} as const

const documents = {
  type: 'object',
  description: 'Where each generated document is served: a path, several paths, or { paths, planned }.',
  additionalProperties: {
    type: ['string', 'array', 'object'],
    pattern: '^/',
    minItems: 1,
    items: { type: 'string', pattern: '^/' },
    additionalProperties: false,
    required: ['paths'],
    properties: {
      paths: { type: 'array', minItems: 1, items: { type: 'string', pattern: '^/' } },
      planned: { type: 'boolean', description: 'true: announced but not implemented.' },
    },
  },
} as const

const files = {
  type: 'object',
  description: 'Served byte for byte: a text, or { file, type, planned }.',
  propertyNames: { pattern: '^/' },
  additionalProperties: {
    type: ['string', 'object'],
    additionalProperties: false,
    properties: {
      file: { type: 'string', pattern: '^\\./', description: 'Path next to the catalog.' },
      type: { ...text, description: 'Media type, if the file extension does not determine it.' },
      planned: { type: 'boolean' },
    },
  },
} as const

const sources = {
  type: 'object',
  description: 'Outside data by name, and the terms on which it may be sold.',
  propertyNames: { pattern: '^[a-z][a-z0-9-]*$' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['title', 'resale'],
    properties: {
      title: text,
      url: text,
      licence: text,
      terms: text,
      attribution: text,
      resale: { enum: ['allowed', 'needs_agreement', 'unknown'] },
      credentials: {
        type: 'array',
        description: 'Names of the environment variables that the source requires.',
        items: { type: 'string', pattern: '^[A-Z][A-Z0-9_]*$' },
      },
    },
  },
} as const

const duration = { type: 'string', pattern: '^[1-9][0-9]{0,6}(ms|s|m|h|d)$' } as const
const address = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' } as const

/** Of an EVM network, or of Solana. */
const payee = { type: 'string', pattern: '^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$' } as const

const passthrough = {
  type: ['string', 'object'],
  description:
    'The site behind this catalog: what the catalog does not name goes there unpaid and unchanged. An address without a path, or { url, deny }. Default: nothing passes.',
  pattern: webAddress.pattern,
  additionalProperties: false,
  required: ['url'],
  properties: {
    url: { ...webAddress, description: 'Address of the site, without a path.' },
    deny: {
      type: 'array',
      minItems: 1,
      description:
        'Paths that never pass, each with everything below it; * stands for any characters of a segment: /admin, /users/*/keys.',
      items: { type: 'string', pattern: '^/' },
    },
  },
} as const

/** Payment settings; prices are in USD whatever the token. */
const payments = {
  type: 'object',
  description: 'How buyers pay.',
  additionalProperties: false,
  required: ['currency'],
  properties: {
    currency: { const: 'USD' },
    pay_to: {
      ...payee,
      type: ['string', 'array'],
      minItems: 1,
      maxItems: 2,
      uniqueItems: true,
      items: payee,
      description:
        'Address that receives the money, quoted: 0x… for EVM networks, base58 for Solana, or a list of one of each; the variable PAY_TO overrides it.',
    },
    reprice_grace: {
      ...duration,
      description: 'How long an offered amount stays valid after a price change. Default: 5m.',
    },
    redeliver: {
      ...duration,
      description: 'How long the same payment gets its answer again without a charge. Default: 24h.',
    },
    payers: {
      type: 'object',
      description: 'Who may pay, and how much.',
      additionalProperties: false,
      minProperties: 1,
      properties: {
        deny: {
          type: ['string', 'array'],
          minLength: 1,
          minItems: 1,
          items: text,
          description:
            'Files of addresses whose payments are refused before any work: one address per line; # starts a comment.',
        },
        own: {
          type: 'array',
          minItems: 1,
          uniqueItems: true,
          items: text,
          description: 'Addresses of your own wallets: the console shows what they buy apart.',
        },
        limits: {
          type: 'object',
          description:
            'What one payer may buy in a period, over all processes; beyond it, calls get 429 before any work and without a charge.',
          additionalProperties: false,
          required: ['per'],
          properties: {
            calls: {
              type: 'integer',
              minimum: 1,
              maximum: 10_000,
              description: 'Most paid calls of one payer within the period. Default: 10000.',
            },
            spend: { type: ['number', 'string'], description: 'Most USD of one payer within the period.' },
            per: { ...duration, description: 'The period, which ends now: 1m, 1h, 1d; at most 366d.' },
          },
        },
        credit: {
          type: 'object',
          description:
            'What is sent before it is paid: streams with a metered price that names if_missing. A stream beyond it is paid first, and sent whole.',
          additionalProperties: false,
          minProperties: 1,
          properties: {
            streams: {
              type: 'integer',
              minimum: 0,
              maximum: 1_000,
              description: 'Most open streams of one payer, over all processes; 0: none. Default: 2.',
            },
            spend: {
              type: ['number', 'string'],
              description: 'Most USD of one payer, by the ceilings of its open streams. Default: 1.',
            },
            loss: {
              type: ['number', 'string'],
              description:
                'Once so many USD of all payers were not paid within an hour, nobody has credit. Default: 10.',
            },
          },
        },
      },
    },
    x402: {
      type: 'object',
      additionalProperties: false,
      required: ['networks'],
      properties: {
        networks: {
          type: 'array',
          minItems: 1,
          uniqueItems: true,
          items: { type: 'string', minLength: 1, pattern: '^[A-Za-z]' },
          description: 'CAIP-2 ids or nicknames (base, polygon, arbitrum, avalanche…), most preferred first.',
        },
        schemes: {
          type: 'array',
          minItems: 1,
          uniqueItems: true,
          items: { enum: ['exact', 'upto', 'batch-settlement'] },
          description:
            'How routes with a price that is known before the work are paid, most preferred first: exact (the price), upto (at most the price, by Permit2), batch-settlement (channels). Default: [exact].',
        },
        channels: {
          type: 'object',
          description: 'Channels of scheme batch-settlement: what they may owe, and when it is claimed.',
          additionalProperties: false,
          properties: {
            withdraw_delay: {
              ...duration,
              description:
                'How long a payer waits for the end of its withdrawal, in which what it owes is claimed: 15m to 30d. A change gives every payer a new channel. Default: 24h.',
            },
            least_deposit: {
              type: 'number',
              description:
                'Smallest deposit in USD, each of which costs you gas; announced in offers. Default: a hundred calls at your highest price (the ceiling of a metered one, the example of a computed one), and most_unclaimed at most.',
            },
            deposit_by: {
              enum: ['eip3009', 'permit2'],
              description:
                'How offers ask for deposits: eip3009, which every token here has, or permit2, for buyers that have approved Permit2 or approve it by signature. Both are taken. Default: eip3009.',
            },
            claim_after: {
              type: 'number',
              description: 'What a channel owes, in USD, when it is claimed at once. Default: 1.',
            },
            claim_every: {
              ...duration,
              description: 'How long money may be unclaimed. Default: 1h.',
            },
            most_unclaimed: {
              type: 'number',
              description:
                'Most that one channel may owe, in USD; a channel begins with least_deposit and may owe more as it is claimed. Default: 10.',
            },
          },
        },
        timeout: { ...duration, description: 'How long a signed payment is valid. Default: 60s.' },
        v1: {
          type: 'boolean',
          description:
            'Whether clients of x402 version 1 can pay too, on the networks that their packages know: base, base-sepolia, avalanche. Default: true.',
        },
        limits: {
          type: 'object',
          description: 'Settlement limits by network; omitted limits keep their defaults.',
          additionalProperties: {
            type: 'object',
            additionalProperties: false,
            properties: {
              confirmations: {
                type: 'integer',
                minimum: 1,
                maximum: 12,
                description:
                  'Blocks that confirm a payment, its own included; buyers wait for them. Default: 1. A payment whose block comes in its last ten seconds waits for 4 at least.',
              },
              max_fee_gwei: {
                type: 'number',
                maximum: 1_000_000,
                description:
                  'Highest gas price, tip included; above it nothing is settled. The default depends on the network.',
              },
              max_gas_loss: {
                type: 'number',
                maximum: 1_000_000,
                description:
                  'Highest cost of reverted transactions per hour, in the coin of the network; above it nothing is sold there. The default depends on the network.',
              },
            },
          },
        },
      },
    },
    mpp: {
      type: 'object',
      additionalProperties: false,
      required: ['method', 'intent', 'chain', 'currency'],
      properties: {
        method: { enum: ['tempo'] },
        intent: { enum: ['charge'] },
        chain: { type: 'integer', minimum: 1 },
        currency: { ...address, description: 'TIP-20 token contract, quoted.' },
      },
    },
  },
} as const

/** The published JSON Schema (2020-12) of the catalog: for completion in editors and the first step of `check`. */
export const catalogSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Ratecard catalog',
  description: 'Every route of a paid HTTP API: path, parameters, price, cache, handler, example.',
  type: 'object',
  additionalProperties: false,
  required: ['catalog', 'service', 'routes'],
  properties: {
    catalog: { const: 1, description: 'Version of this file format.' },
    service,
    unknown_parameters: {
      enum: ['ignore', 'refuse'],
      description:
        'Query parameters that a route does not declare: ignore (default), with a warning in the answer and the 402, or refuse with 422. A name that is nearly a declared one is always refused.',
    },
    status: {
      enum: STATUS_KINDS,
      description:
        'Who sees /status, /status.json and /stats.json. public (default): everybody, without figures of sales; sales: everybody, with the steps from the 402 to the answer and the answers of each day; private: nobody, they are not served. The console and ratecard stats show all figures in any case.',
    },
    payments,
    webhooks: {
      type: 'array',
      minItems: 1,
      maxItems: 10,
      description: 'Addresses of yours that are told what happens, by Standard Webhooks.',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['url', 'secret'],
        properties: {
          url: { ...text, description: 'Where events are sent; may be an internal address.' },
          events: {
            type: 'array',
            minItems: 1,
            uniqueItems: true,
            items: { type: 'string', enum: ['sale', 'refund_due', 'network_closed', 'listing_dropped'] },
            description: 'Which events. Default: all.',
          },
          secret: {
            type: 'string',
            pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
            description: 'The variable of the secret that signs: whsec_ and 24 to 64 bytes in base64.',
          },
        },
      },
    },
    access: {
      type: 'object',
      description: 'Who calls paid routes without paying for each call.',
      additionalProperties: false,
      minProperties: 1,
      properties: {
        upstream: {
          type: 'boolean',
          description:
            'true: routes with handler: proxy pass a caller’s own credential on instead of ours, in the header of "credential". What the upstream accepts is not paid for; 401 becomes the 402. Default: false.',
        },
        api_keys: {
          type: 'object',
          description: 'Customers with an API key.',
          additionalProperties: false,
          required: ['file'],
          properties: {
            file: {
              ...text,
              description:
                'File of SHA-256 digests of keys, one per line with the name of its customer; "ratecard keys new NAME" writes it. # starts a comment.',
            },
            header: {
              ...text,
              ...headerName,
              type: 'string',
              description: 'Header of the key. Default: X-API-Key; Authorization: Bearer works too.',
            },
          },
        },
      },
    },
    mcp_servers: mcpServers,
    categories,
    defaults,
    routes,
    tools,
    crawlers,
    openapi_documents: {
      enum: ['list', 'omit'],
      description:
        'Whether the OpenAPI document also describes the generated documents: list (default), or omit to shorten it; x-documents then names their paths.',
    },
    documents,
    files,
    passthrough,
    sources,
  },
} as const

/** The type of a catalog file, before defaults are applied. */
export type Declared = Shape<typeof catalogSchema>
export type DeclaredRoute = Shape<typeof routes.additionalProperties>
export type DeclaredTool = Shape<typeof tools.additionalProperties>
export type DeclaredPrice = Exclude<NonNullable<DeclaredRoute['price']>, string | number>
/** A price that is computed from the arguments. */
export type DeclaredPriceRule = Pick<DeclaredPrice, 'base' | 'by' | 'per' | 'min' | 'max'>
/** What is counted after the work. */
export type DeclaredCount = NonNullable<DeclaredPrice['metered']>[number]
export type DeclaredRate = Exclude<NonNullable<DeclaredPriceRule['per']>, readonly unknown[]>
export type DeclaredParameters = Shape<typeof parameters>
export type DeclaredParameter = Shape<typeof parameters.additionalProperties>
