import { compileApiKeys } from './api-keys.ts'
import { hash } from 'node:crypto'
import { isAddress, toChecksum } from '../base/address.ts'
import { parseDuration } from '../base/duration.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { parseCoin, parseGwei, parsePrice, toMicros, type Micros } from '../base/money.ts'
import { findAnyNetwork, findNetwork, isTestNetwork, type Limits } from '../base/networks.ts'
import { ownersOf } from './arguments.ts'
import {
  USUAL_CHANNELS,
  type Catalog,
  type ChannelTerms,
  type DocumentPlace,
  type Operation,
  type OutsideSource,
  type Passthrough,
  type PayerLimit,
  type Payments,
  type ServedFile,
  type Service,
  type StreamCredit,
  type Webhook,
  WEBHOOK_EVENTS,
} from './catalog.ts'
import { compileRoute, compileTool } from './compile-route.ts'
import { namer } from './namer.ts'
import type { Declared } from './schema.ts'
import { type CheckContext, deniedFiles, PROXY, readText, routesOf } from './check-context.ts'

/** Turns a checked catalog into the frozen value from which everything else is derived. */
export function compile(context: CheckContext): Catalog {
  const { declared, handlers } = context
  const loaded = handlers && new Set([...handlers, PROXY])
  const owners = ownersOf(declared)
  const compiler = {
    owners,
    document: context.document,
    json: (value: unknown) => jsonOf(context, value),
    access: declared.access,
    id: namer(),
    name: namer(Object.values(declared.routes).flatMap(({ name }) => name ?? [])),
    isLoaded: loaded === undefined ? () => true : (name: string) => loaded.has(name),
  }
  const compiled = routesOf(declared).map((place) => compileRoute(place, compiler))
  const tools = Object.entries(declared.tools ?? {}).map(([name, tool]) => compileTool(name, tool, compiler))
  const routes = compiled.flatMap(({ routes }) => routes)
  const operations = [...compiled.map(({ operation }) => operation), ...tools]
  const files = compileFiles(context)
  const content = {
    service: compileService(
      declared.service,
      declared.passthrough === undefined ? usualIcon(routes, files) : undefined,
    ),
    payments: compilePayments(context, operations),
    apiKeys: compileApiKeys(context),
    servers: Object.fromEntries(
      Object.entries(declared.mcp_servers ?? {}).map(([name, { title, description }]) => [
        name,
        { title, description },
      ]),
    ),
    categories: declared.categories ?? {},
    crawlers: { paid: declared.crawlers?.paid ?? 'disallow', training: declared.crawlers?.training },
    openapiDocuments: declared.openapi_documents ?? ('list' as const),
    unknownParameters: declared.unknown_parameters ?? ('ignore' as const),
    operations,
    webhooks: compileWebhooks(declared.webhooks ?? []),
    status: declared.status ?? ('public' as const),
    routes,
    documents: compileDocuments(declared),
    files,
    passthrough: compilePassthrough(declared.passthrough),
    sources: compileSources(declared.sources),
  }
  return deepFreeze({ revision: revisionOf(content), ...content })
}

/** The icon that is served unless the catalog has something else at its path. */
function usualIcon(routes: Catalog['routes'], files: Catalog['files']): string | undefined {
  const path = '/favicon.svg'
  const taken = [...routes, ...files.filter(({ planned }) => planned)].some((each) => each.path === path)
  return taken ? undefined : path
}

function compileWebhooks(declared: NonNullable<Declared['webhooks']>): Webhook[] {
  return declared.map(({ url, secret, events: wanted }) => ({
    url,
    secret,
    events: WEBHOOK_EVENTS.filter((each) => wanted?.includes(each) ?? true),
  }))
}

function compileService(service: Declared['service'], usualIcon: string | undefined): Service {
  return {
    name: service.name,
    version: service.version,
    cardVersion: service.card_version ?? service.version,
    description: service.description ?? service.name,
    guidance: service.guidance,
    tags: service.tags ?? [],
    icon: service.icon ?? usualIcon,
    contact: service.contact ?? {},
    provider: service.provider,
    updated: service.updated,
    license: service.license,
    ownershipProofs: service.ownership_proofs ?? [],
    mcpRegistryAuth: service.mcp_registry_auth,
  }
}

function compilePayments(context: CheckContext, operations: readonly Operation[]): Payments {
  const {
    declared: { payments },
    document,
  } = context
  const { x402, mpp } = payments ?? {}
  const payees = [payments?.pay_to ?? []].flat()
  const evmPayee = payees.find(isAddress)
  const denyLists = deniedFiles(context)
  return {
    payTo: evmPayee === undefined ? undefined : toChecksum(evmPayee),
    payToSolana: payees.find((payee) => !isAddress(payee)),
    repriceGrace: duration(payments?.reprice_grace, '5m'),
    redeliver: duration(payments?.redeliver, '24h'),
    denied: [...new Set(denyLists.flatMap(({ lines = [] }) => lines.map(({ word }) => word)))],
    ownPayers: payments?.payers?.own ?? [],
    denyLists: denyLists.map(({ path }) => path),
    payerLimit: compilePayerLimit(context),
    streamCredit: compileStreamCredit(context),
    x402:
      x402 === undefined
        ? undefined
        : {
            networks: x402.networks.map((name) => findAnyNetwork(name)?.id ?? name),
            schemes: x402.schemes ?? ['exact'],
            channels: compileChannels(context, operations),
            timeout: duration(x402.timeout, '60s'),
            v1: x402.v1 ?? true,
            limits: compileLimits(x402.limits ?? {}, document),
            testnet: x402.networks.some((name) => findAnyNetwork(name)?.testnet === true),
          },
    mpp: mpp === undefined ? undefined : { ...mpp, testnet: isTestNetwork(`eip155:${mpp.chain}`) },
  }
}

/** Most calls of a payer that are counted. */
const MOST_CALLS = 10_000

function compilePayerLimit({ declared, document }: CheckContext): PayerLimit | undefined {
  const limits = declared.payments?.payers?.limits
  if (limits === undefined) return undefined
  const spend = parsePrice(document.spelling(['payments', 'payers', 'limits', 'spend']) ?? '')
  return {
    calls: limits.calls ?? MOST_CALLS,
    spend: spend.kind === 'price' ? spend.value : undefined,
    per: duration(limits.per, '1d'),
  }
}

function compileStreamCredit({ declared, document }: CheckContext): StreamCredit {
  const credit = declared.payments?.payers?.credit
  const amount = (key: string, usual: Micros): Micros => {
    const parsed = parsePrice(document.spelling(['payments', 'payers', 'credit', key]) ?? '')
    return parsed.kind === 'price' ? parsed.value : usual
  }
  return {
    streams: credit?.streams ?? 2,
    spend: amount('spend', toMicros(1_000_000n)),
    loss: amount('loss', toMicros(10_000_000n)),
    validity: duration(declared.payments?.x402?.timeout, '60s'),
  }
}

function compileChannels(
  { declared, document }: CheckContext,
  operations: readonly Operation[],
): ChannelTerms {
  const channels = declared.payments?.x402?.channels
  const amount = (key: string, usual: Micros): Micros => {
    const parsed = parsePrice(document.spelling(['payments', 'x402', 'channels', key]) ?? '')
    return parsed.kind === 'price' ? parsed.value : usual
  }
  const mostUnclaimed = amount('most_unclaimed', USUAL_CHANNELS.mostUnclaimed)
  return {
    withdrawDelay: duration(channels?.withdraw_delay, '24h'),
    leastDeposit: amount('least_deposit', usualDeposit(operations, mostUnclaimed)),
    depositBy: channels?.deposit_by ?? USUAL_CHANNELS.depositBy,
    claimAfter: amount('claim_after', USUAL_CHANNELS.claimAfter),
    claimEvery: duration(channels?.claim_every, '1h'),
    mostUnclaimed,
  }
}

/** Calls that the smallest deposit is enough for. */
const CALLS_OF_A_DEPOSIT = 100n

/** A hundred calls of what costs most, since an offer names one amount for all; at most what a channel may owe. */
function usualDeposit(operations: readonly Operation[], most: Micros): Micros {
  const dearest = operations.reduce((highest, { price = 0n, planned }) => {
    const amount = typeof price === 'object' ? price.example : price
    return !planned && amount > highest ? amount : highest
  }, 0n)
  const deposit = dearest * CALLS_OF_A_DEPOSIT
  return deposit < most ? toMicros(deposit) : most
}

type DeclaredLimits = NonNullable<NonNullable<NonNullable<Declared['payments']>['x402']>['limits']>

/** Parses fees from their source text, as prices. */
function compileLimits(limits: DeclaredLimits, document: CheckContext['document']): Record<string, Limits> {
  return Object.fromEntries(
    Object.entries(limits).flatMap(([name, { confirmations }]): [string, Limits][] => {
      const network = findNetwork(name)
      if (network === undefined) return []
      const spelt = (key: string): string =>
        document.spelling(['payments', 'x402', 'limits', name, key]) ?? ''
      const fee = parseGwei(spelt('max_fee_gwei'))
      const loss = parseCoin(spelt('max_gas_loss'))
      const usual = network.limits
      return [
        [
          network.id,
          {
            confirmations: confirmations ?? usual.confirmations,
            maxFeePerGas: fee ?? usual.maxFeePerGas,
            maxGasLoss: loss ?? usual.maxGasLoss,
          },
        ],
      ]
    }),
  )
}

/** The documents that are served when the catalog does not list any. */
const USUAL_DOCUMENTS: Readonly<Record<string, string | string[]>> = {
  index: '/',
  health: '/health',
  openapi: '/openapi.json',
  docs: '/docs',
  'docs-md': ['/docs.md', '/llms-full.txt'],
  'docs-errors': '/docs/errors',
  status: '/status',
  'status-json': '/status.json',
  stats: '/stats.json',
  privacy: '/privacy',
  llms: '/llms.txt',
  'agent-card': ['/.well-known/agent-card.json', '/.well-known/agent.json'],
  x402: ['/.well-known/x402', '/.well-known/x402.json'],
  'x402-resources': ['/x402-resources', '/.well-known/x402-resources'],
  categories: '/categories.json',
  ard: ['/.well-known/ard.json', '/.well-known/ai-catalog.json'],
  'api-catalog': '/.well-known/api-catalog',
  robots: '/robots.txt',
  sitemap: '/sitemap.xml',
  'security-txt': '/.well-known/security.txt',
  'mcp-registry-auth': '/.well-known/mcp-registry-auth',
}

/** What agents, crawlers and monitors ask for; all other pages are those of the site behind the catalog. */
const OF_CATALOG: ReadonlySet<string> = new Set([
  '/health',
  '/openapi.json',
  '/llms.txt',
  '/robots.txt',
  '/x402-resources',
])

function isOfCatalog(path: string): boolean {
  return OF_CATALOG.has(path) || path.startsWith('/.well-known/')
}

/** Files and routes of the operator at one of these paths take precedence. */
function usualDocuments({ routes, files, passthrough }: Declared): Declared['documents'] {
  const read = Object.keys(routes).map((key) => key.replace(/^GET /, ''))
  const taken = new Set([...read, ...Object.keys(files ?? {})])
  return Object.fromEntries(
    Object.entries(USUAL_DOCUMENTS)
      .map(([name, paths]): [string, string[]] => [
        name,
        [paths].flat().filter((path) => !taken.has(path) && (passthrough === undefined || isOfCatalog(path))),
      ])
      .filter(([, paths]) => paths.length > 0),
  )
}

/** What is not served while the status is private. */
const STATUS_DOCUMENTS: ReadonlySet<string> = new Set(['status', 'status-json', 'stats'])

function compileDocuments(declared: Declared): Record<string, DocumentPlace> {
  const documents = Object.entries(declared.documents ?? usualDocuments(declared) ?? {})
  const served =
    declared.status === 'private' ? documents.filter(([name]) => !STATUS_DOCUMENTS.has(name)) : documents
  return Object.fromEntries(
    served.map(([name, entry]) => {
      if (typeof entry === 'string') return [name, { paths: [entry], planned: false }]
      return [
        name,
        'paths' in entry
          ? { paths: entry.paths, planned: entry.planned === true }
          : { paths: entry, planned: false },
      ]
    }),
  )
}

function compilePassthrough(declared: Declared['passthrough']): Passthrough | undefined {
  if (declared === undefined) return undefined
  const { url, deny = [] } = typeof declared === 'string' ? { url: declared } : declared
  return { url: new URL(url).origin, deny }
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  ico: 'image/x-icon',
  jpg: 'image/jpeg',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
  png: 'image/png',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
  webp: 'image/webp',
  xml: 'application/xml; charset=utf-8',
}

function compileFiles({ declared, read }: CheckContext): ServedFile[] {
  return Object.entries(declared.files ?? {}).map(([path, entry]) => {
    const ending = path.slice(path.lastIndexOf('.') + 1)
    const usual =
      (Object.hasOwn(MEDIA_TYPES, ending) ? MEDIA_TYPES[ending] : undefined) ?? 'text/plain; charset=utf-8'
    const { file, type = usual, planned = false } = typeof entry === 'string' ? {} : entry
    const written = typeof entry === 'string' ? Buffer.from(entry) : Buffer.alloc(0)
    const bytes = file === undefined ? written : (read(file) ?? written)
    return { path, type, base64: bytes.toString('base64'), planned }
  })
}

function compileSources(sources: Declared['sources']): Record<string, OutsideSource> {
  return Object.fromEntries(
    Object.entries(sources ?? {}).map(([name, source]) => [
      name,
      {
        title: source.title,
        url: source.url,
        licence: source.licence,
        terms: source.terms,
        attribution: source.attribution,
        resale: source.resale,
        credentials: source.credentials ?? [],
      },
    ]),
  )
}

/** Inline JSON, or the content of a file next to the catalog. */
function jsonOf(context: CheckContext, value: unknown): Json | undefined {
  if (typeof value !== 'string') return asJson(value)
  const parsed: unknown = JSON.parse(readText(context, value) ?? 'null')
  return asJson(parsed)
}

/** Converts YAML data to JSON; values that JSON lacks (dates, NaN) take their text form. */
function asJson(value: unknown): Json | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value
  if (typeof value === 'bigint') return value.toString()
  if (Array.isArray(value)) return value.map((item) => asJson(item) ?? null)
  if (!isJsonObject(value)) return undefined
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, asJson(member) ?? null]))
}

function duration(text: string | undefined, otherwise: string): number {
  return parseDuration(text ?? otherwise) ?? 0
}

/** `digestJson` would take twice as long for thousands of routes, and no other program computes this digest. */
function revisionOf(content: Omit<Catalog, 'revision'>): string {
  const operations = content.operations.map(({ price = 'free', ...each }) => ({
    ...each,
    price: typeof price === 'object' ? price.rule : price.toString(),
  }))
  const routes = content.routes.map((each) => ({ ...each, operation: each.operation.id }))
  const text = JSON.stringify({ ...content, operations, routes }, (_, value: unknown) => {
    if (typeof value === 'bigint') return value.toString()
    return isJsonObject(value) ? sortKeys(value) : value
  })
  return hash('sha256', text, 'base64url').slice(0, 12)
}

/** The same members in the order of their keys, in which many are already. */
function sortKeys(value: JsonObject): JsonObject {
  const keys = Object.keys(value)
  const isSorted = keys.every((key, at) => at === 0 || (keys[at - 1] ?? '') <= key)
  return isSorted ? value : Object.fromEntries(keys.sort().map((key) => [key, value[key] ?? null]))
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFreeze(member)
  }
  return value
}
