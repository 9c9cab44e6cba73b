import type { Argument } from '../handler.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { toMicros, type Micros } from '../base/money.ts'
import type { Limits } from '../base/networks.ts'
import type { SuccessStatus } from '../base/success-status.ts'
import type { Meter } from './price/price.ts'
import type { Price } from './price/price.ts'

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]

/** A checked catalog: deep-frozen, exact, and the one value from which everything else is derived. */
export interface Catalog {
  /** Short hash of the content: the same text and examples give the same revision. */
  readonly revision: string
  readonly service: Service
  readonly payments: Payments
  /** Undefined: every call of a paid route is paid. */
  readonly apiKeys: ApiKeys | undefined
  readonly servers: Readonly<Record<string, Server>>
  readonly categories: Readonly<Record<string, string>>
  readonly crawlers: Crawlers
  readonly webhooks: readonly Webhook[]
  readonly status: StatusKind
  /** Whether the OpenAPI document describes the generated documents too. */
  readonly openapiDocuments: 'list' | 'omit'
  /** How query parameters that a route does not declare are treated. */
  readonly unknownParameters: 'ignore' | 'refuse'
  readonly operations: readonly Operation[]
  /** In the order of the file, each sample right after its route. */
  readonly routes: readonly Route[]
  readonly documents: Readonly<Record<string, DocumentPlace>>
  readonly files: readonly ServedFile[]
  /** Undefined: what the catalog does not name is not found. */
  readonly passthrough: Passthrough | undefined
  readonly sources: Readonly<Record<string, OutsideSource>>
}

export interface Service {
  readonly name: string
  readonly version: string
  readonly cardVersion: string
  readonly description: string
  readonly guidance: string | undefined
  readonly tags: readonly string[]
  /** A path under `files` or of the usual icon, or an address. */
  readonly icon: string | undefined
  readonly contact: { readonly email?: string; readonly url?: string }
  readonly provider: { readonly organization: string; readonly url: string } | undefined
  readonly updated: string | undefined
  readonly license: { readonly name: string; readonly identifier?: string; readonly url?: string } | undefined
  /** Signatures over the origin by the key that is paid. */
  readonly ownershipProofs: readonly string[]
  /** The line that proves the ownership of the domain to the MCP registry. */
  readonly mcpRegistryAuth: string | undefined
}

export function iconUrl({ icon }: Service, baseUrl: string): string | undefined {
  return icon?.startsWith('/') ? baseUrl + icon : icon
}

export const WEBHOOK_EVENTS = ['sale', 'refund_due', 'network_closed', 'listing_dropped'] as const
export type WebhookEventType = (typeof WEBHOOK_EVENTS)[number]

/** An address of the operator that is told what happens. */
export interface Webhook {
  readonly url: string
  readonly events: readonly WebhookEventType[]
  /** The variable of its secret. */
  readonly secret: string
}

/**
 * What the pages and documents of the status show: whether everything works (`public`), the numbers of calls and sales
 * too (`sales`), or nothing, since they are not served (`private`).
 */
export const STATUS_KINDS = ['public', 'sales', 'private'] as const
export type StatusKind = (typeof STATUS_KINDS)[number]

/** Rules for crawlers in robots.txt. */
export interface Crawlers {
  readonly paid: 'allow' | 'disallow'
  readonly training: 'allow' | 'disallow' | undefined
}

export interface Payments {
  /** On EVM networks. */
  readonly payTo: string | undefined
  /** On Solana. */
  readonly payToSolana: string | undefined
  readonly repriceGrace: number
  readonly redeliver: number
  /** Addresses whose payments are refused, in lower case. */
  readonly denied: readonly string[]
  /** Addresses of the operator’s own wallets, as the catalog spells them. */
  readonly ownPayers: readonly string[]
  /** The files that these addresses come from, as the catalog names them. */
  readonly denyLists: readonly string[]
  readonly payerLimit: PayerLimit | undefined
  readonly streamCredit: StreamCredit
  readonly x402:
    | {
        /** CAIP-2 ids, most preferred first. */
        readonly networks: readonly string[]
        /** Names of the schemes that routes with a fixed or computed price offer, most preferred first. */
        readonly schemes: readonly string[]
        readonly channels: ChannelTerms
        readonly timeout: number
        /** Whether clients of x402 version 1 are served too. */
        readonly v1: boolean
        /** By CAIP-2 id; a network without an entry uses its own defaults. */
        readonly limits: Readonly<Record<string, Limits>>
        /** Whether these are test networks, whose money is worthless; false in a sandbox, which says so of itself. */
        readonly testnet: boolean
      }
    | undefined
  readonly mpp:
    | {
        readonly method: string
        readonly intent: string
        readonly chain: number
        readonly currency: string
        /** Whether this is a test network, as for x402. */
        readonly testnet: boolean
      }
    | undefined
}

/** How channels of scheme batch-settlement are used. Times are in milliseconds. */
export interface ChannelTerms {
  /** Between the start of a payer's withdrawal and its end. */
  readonly withdrawDelay: number
  readonly leastDeposit: Micros
  /** How offers ask for deposits. */
  readonly depositBy: 'eip3009' | 'permit2'
  /** What a channel owes when it is claimed at once. */
  readonly claimAfter: Micros
  /** The longest time for which money is left unclaimed. */
  readonly claimEvery: number
  /** The most that a channel may owe. */
  readonly mostUnclaimed: Micros
}

/** What holds where the catalog says nothing of channels; its prices decide on the least deposit. */
export const USUAL_CHANNELS: ChannelTerms = {
  withdrawDelay: 86_400_000,
  leastDeposit: toMicros(100_000n),
  depositBy: 'eip3009',
  claimAfter: toMicros(1_000_000n),
  claimEvery: 3_600_000,
  mostUnclaimed: toMicros(10_000_000n),
}

/** How customers with a key call paid routes without paying for each call. */
export interface ApiKeys {
  /** The request header of a key; `Authorization: Bearer` works too. */
  readonly header: string
  readonly keys: readonly ApiKey[]
}

/** A customer; the service knows the digest of a key, never the key. */
export interface ApiKey {
  /** SHA-256 of the key, as lower-case hexadecimal. */
  readonly digest: string
  /** For the log and the usage. */
  readonly name: string
}

/** Who calls a paid operation without paying for the call; nobody where it is free. */
export interface Access {
  /** Customers with an API key. */
  readonly apiKeys: boolean
  /** Callers whose own credential its upstream accepts. */
  readonly upstream: boolean
}

/** Whether a catalog sells for the worthless money of test networks: it never mixes them with real ones. */
export function usesTestNetworks({ x402, mpp }: Pick<Payments, 'x402' | 'mpp'>): boolean {
  return (x402?.testnet ?? false) || (mpp?.testnet ?? false)
}

/** What is sent before it is paid. */
export interface StreamCredit {
  /** Most open streams of one payer. */
  readonly streams: number
  /** Most that one payer may owe, by the ceilings of its streams. */
  readonly spend: Micros
  /** Milliseconds for which a payment is signed. */
  readonly validity: number
  /** What may remain unpaid within an hour, over all payers, before nobody has credit. */
  readonly loss: Micros
}

/** What one payer may buy within a period. */
export interface PayerLimit {
  readonly calls: number
  /** Undefined: no limit on the amount. */
  readonly spend: Micros | undefined
  /** Milliseconds. */
  readonly per: number
}

export interface Server {
  readonly title: string
  readonly description: string | undefined
}

/** A unit of work that is sold or free: one handler, one price and one cache, whichever endpoints offer it. */
export interface Operation {
  /** `gamestore/app`: the path without its first segment and templates. */
  readonly id: string
  readonly handler: string
  /** GET for tools without a route. Calls by other methods have effects. */
  readonly method: Method
  /** Undefined: free. With a meter, the most that a call costs. */
  readonly price: Price | undefined
  /** What is counted after the work; undefined: the price is known before it. */
  readonly meter: Meter | undefined
  /** Two or three words. */
  readonly title: string | undefined
  readonly summary: string
  /** May contain `{route: …}`, as `description`: see `spellReferences`. */
  readonly useWhen: string | undefined
  /** Questions that this operation answers, in the words of its users. */
  readonly queries: readonly string[]
  readonly description: string | undefined
  readonly deprecated: boolean
  readonly category: string | undefined
  readonly cache: Cache | undefined
  /** Milliseconds. */
  readonly timeout: number
  /** Whether the payment is settled after the work or before it. */
  readonly settle: 'after' | 'upfront'
  /** All arguments of the handler, whichever endpoint declares them. */
  readonly parameters: readonly Parameter[]
  readonly body: Body | undefined
  readonly response: Response
  readonly sources: readonly string[]
  readonly example: Json | undefined
  /** JSON Schema of an answer’s own members, without the envelope. */
  readonly responseSchema: JsonObject | undefined
  /** Short hash of the form of its answers, from the example: a cached answer of another form is discarded. */
  readonly form: string
  readonly upstream: Upstream | undefined
  readonly access: Access
  readonly skill: string | undefined
  readonly tool: Tool | undefined
  readonly planned: boolean
}

export interface Cache {
  /** Milliseconds an answer is fresh. */
  readonly ttl: number
  /** Milliseconds after `ttl` during which it may still be returned if the source fails. */
  readonly staleIfError: number
}

/** The body of requests. Members of a body with `properties` are parameters; any other body is the argument `body`. */
export interface Body {
  readonly form: 'properties' | 'whole'
  readonly mediaType: string
  /** How it is parsed. */
  readonly kind: 'json' | 'form' | 'text' | 'bytes'
  /** Bytes. */
  readonly maxSize: number
  /** JSON Schema (2020-12) of the whole body. */
  readonly schema: JsonObject | undefined
  readonly example: Json | undefined
}

/** The answer apart from its members. */
export interface Response {
  /** Undefined: JSON. */
  readonly mediaType: string | undefined
  /** Bytes. */
  readonly maxSize: number
  /** Statuses of a success that documents show; the first one is that of the example. */
  readonly statuses: readonly SuccessStatus[]
  /** Names of the headers that are passed on with the answer. */
  readonly headers: readonly string[]
  /** Whether it is sent while it is produced. */
  readonly stream: boolean
  /** Whether its last event states what was charged. */
  readonly receiptEvent: boolean
}

/** An existing API that a route sells. */
export interface Upstream {
  /** URL with {parameters}, and in its query {lists*} whose key is repeated; all other parameters go to the query. */
  readonly url: string
  /** By name, with {parameters}. */
  readonly headers: Readonly<Record<string, string>>
  readonly credential: Credential | undefined
}

/** How an upstream authenticates the operator, as names of environment variables. */
export type Credential =
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'header' | 'query'; readonly values: Readonly<Record<string, string>> }
  | { readonly kind: 'basic'; readonly user: string; readonly password: string | undefined }

export interface Tool {
  readonly server: string
  readonly name: string
  /** `payer`: the answer depends on who pays; `signer`: free, for anyone who proves an address. */
  readonly requires: 'payer' | 'signer' | undefined
  readonly annotations: Annotations
}

/** Hints for clients that override those of the handler, in the terms of MCP. */
export interface Annotations {
  readonly readOnly: boolean | undefined
  readonly destructive: boolean | undefined
  readonly idempotent: boolean | undefined
  readonly openWorld: boolean | undefined
}

export type RouteKind = 'paid' | 'sample' | 'free'

/** The HTTP endpoint of an operation. */
export interface Route {
  /** Stable name for clients and the router: `paid_gamestore_app`. */
  readonly name: string
  readonly kind: RouteKind
  /** As written in the catalog, with templates in braces. */
  readonly path: string
  readonly operation: Operation
  readonly summary: string
  readonly parameters: readonly Parameter[]
  /** Arguments of the handler: fixed, or taken from a parameter of this route. */
  readonly bindings: readonly Binding[]
  /** `signer`: free, for anyone who proves an address. */
  readonly requires: 'signer' | undefined
  /** Path of the free sample of a paid route. */
  readonly sample: string | undefined
  /** Path of the paid route of a sample. */
  readonly full: string | undefined
}

/** The MCP tool of an operation. */
export interface ToolEndpoint {
  readonly kind: 'tool'
  readonly operation: Operation
  readonly tool: Tool
  /** The endpoint that answers name: the route of the same operation, otherwise `server.tool`. */
  readonly path: string
  readonly summary: string
  readonly parameters: readonly Parameter[]
  /** Absolute URL of the endpoint. */
  readonly url: string
}

/** Where an operation can be called. */
export type Endpoint = Route | ToolEndpoint

export type Binding =
  | { readonly kind: 'parameter'; readonly argument: string; readonly parameter: string }
  | { readonly kind: 'fixed'; readonly argument: string; readonly value: Argument }

export type Scalar = string | number | boolean

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'body'
  /** `object` in bodies and tools only; its default and example are JSON as a text. */
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'object'
  readonly required: boolean
  readonly description: string | undefined
  readonly default: Scalar | undefined
  readonly example: Scalar | undefined
  /** Default and example as JSON values: lists and objects are texts in the catalog. */
  readonly values: { readonly default: Json | undefined; readonly example: Json | undefined }
  readonly enum: readonly Scalar[] | undefined
  readonly aliases: Readonly<Record<string, string>>
  readonly minimum: number | undefined
  readonly maximum: number | undefined
  readonly exclusiveMinimum: number | undefined
  readonly minLength: number | undefined
  readonly maxLength: number | undefined
  readonly pattern: string | undefined
  readonly format: 'date' | 'country' | undefined
  readonly list: List | undefined
  /** Identifies the purchase for its buyer: two payments with the same value are charged once. */
  readonly isIdempotencyKey: boolean
}

export interface List {
  readonly items: 'string' | 'integer'
  readonly minItems: number
  readonly maxItems: number
  readonly minimum: number | undefined
  readonly maximum: number | undefined
}

export interface DocumentPlace {
  readonly paths: readonly string[]
  readonly planned: boolean
}

export interface ServedFile {
  readonly path: string
  readonly type: string
  /** The content in base64, which can be frozen. */
  readonly base64: string
  readonly planned: boolean
}

/** Where requests go that the catalog does not name. */
export interface Passthrough {
  /** Origin of the site. */
  readonly url: string
  /** Paths that never pass, with everything below them; `*` stands for any characters of a segment. */
  readonly deny: readonly string[]
}

/** Whether the terms of a source let its data be sold. */
export type Resale = 'allowed' | 'needs_agreement' | 'unknown'

export interface OutsideSource {
  readonly title: string
  readonly url: string | undefined
  readonly licence: string | undefined
  readonly terms: string | undefined
  readonly attribution: string | undefined
  readonly resale: Resale
  /** Environment variables that the source requires. */
  readonly credentials: readonly string[]
}

/** A route as catalogs write it: `/paid/app/{appid}`, `POST /paid/translate`. */
export function routeKey({ path, operation: { method } }: Pick<Route, 'path' | 'operation'>): string {
  return method === 'GET' ? path : `${method} ${path}`
}

/** `/app/{appid}` as routers and listings write it: `/app/:appid`. */
export function colonTemplate(path: string): string {
  return path.replace(/\{([^{}/]*)\}/g, ':$1')
}

/** The path with every template filled from its parameter's example. */
export function examplePath({ path, parameters }: Route): string {
  return fillPath(path, (name) => String(parameters.find((each) => each.name === name)?.example ?? name))
}

/** Names of the `{templates}` of a path, in order. */
export function templatesOf(path: string): string[] {
  return [...path.matchAll(/\{([^{}/]*)\}/g)].map((match) => match[1] ?? '')
}

/** Names of the parameters in the address or a header of an upstream, the star of a repeated list removed. */
export function upstreamParameters(text: string): string[] {
  return templatesOf(text).map((name) => name.replace(/\*$/, ''))
}

/** The environment variables of a credential. */
export function variablesOf(credential: Credential | undefined): string[] {
  switch (credential?.kind) {
    case undefined:
      return []
    case 'bearer':
      return [credential.token]
    case 'header':
    case 'query':
      return Object.values(credential.values)
    case 'basic':
      return [credential.user, ...(credential.password === undefined ? [] : [credential.password])]
  }
}

/** A concrete path: each template replaced by its value, percent-encoded. */
export function fillPath(path: string, value: (name: string) => string): string {
  return path.replace(/\{([^{}/]*)\}/g, (_, name: string) => encodeURIComponent(value(name)))
}
