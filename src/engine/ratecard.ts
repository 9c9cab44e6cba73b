import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import type Koa from 'koa'
import type { Observe } from './access.ts'
import { Cache, type CacheStore } from './cache/cache.ts'
import type { Catalog } from './catalog/catalog.ts'
import { CatalogError, formatIssue } from './catalog/issue.ts'
import {
  loadServed,
  openCache,
  openLedger,
  openNetworks,
  protocolsOf,
  type AllNetworks,
  type PaymentConfig,
} from './compose.ts'
import type { HandlerMap } from './handler.ts'
import type { OperatorRoute } from './http/app.ts'
import type { AllFigures } from './http/status.ts'
import { createService, type Service } from './http/service.ts'
import type { Ledger } from './ledger/ledger.ts'
import { formatPrice } from './money.ts'
import { OptionError, OPTIONS, readPayments, type RatecardOptions } from './options.ts'
import { invalidConfig, missingConfig, movedPayee } from './payment-config.ts'
import type { SettingNames } from './protocols/protocol.ts'
import { world, type Runtime } from './runtime.ts'
import type { OnPaymentChange } from './usage/usage.ts'

/** A catalog that is being served. */
export interface Ratecard {
  /** The Koa application; middleware added with `koa.use` answers what the catalog does not. */
  readonly koa: Koa
  /** What is served now. */
  readonly catalog: ServedCatalog
  /** A listener for `node:http`, Express and everything that takes one: at the root of its host, before body parsers. */
  callback(): RequestListener
  /** Reads the catalog again and serves it from the next request on; requests in flight finish on the old one. */
  reload(): Reload
  /**
   * Finishes the purchases in flight, stops background work and closes the stores. Stop the HTTP server first; requests
   * that come later are answered 503, and nothing is charged for them.
   */
  close(): Promise<void>
}

/** The catalog in the form that programs ask about. */
export interface ServedCatalog {
  readonly title: string
  readonly version: string
  /** Short name of this content: the same catalog has the same revision. */
  readonly revision: string
  readonly operations: readonly ServedCatalogOperation[]
}

/** One thing that is sold or given away. */
export interface ServedCatalogOperation {
  readonly id: string
  readonly summary: string
  /** USD, such as `0.001000`; undefined when it is free. */
  readonly price: string | undefined
  /** Paths of its routes, with parameters in braces. */
  readonly paths: readonly string[]
}

/** What became of a reload: a catalog that cannot be served changes nothing. */
export type Reload =
  | { readonly kind: 'reloaded'; readonly before: string; readonly revision: string }
  | {
      readonly kind: 'refused'
      /** The revision that is still served. */
      readonly revision: string
      /** For the operator: every issue with its position. */
      readonly reason: string
    }

/**
 * Serves a catalog: reads and checks it, opens the ledger and the cache, and returns a Koa application that answers its
 * routes, documents and MCP tools, and takes payments for them. Nothing is sent to a network before the first payment.
 *
 * @param options See {@link RatecardOptions}.
 * @returns Resolves once requests can be answered.
 * @throws {OptionError} An option is missing or wrong; the message names it.
 * @throws {CatalogError} The catalog cannot be served; the message lists every issue with its position.
 * @throws {LedgerError} The ledger cannot be opened, or does not keep what it stores.
 *
 * @example
 * import { createServer } from 'node:http'
 * import { createRatecard } from 'ratecard'
 *
 * const app = await createRatecard({
 *   catalog: 'catalog.yaml',
 *   baseUrl: 'https://api.example.com',
 *   handlers: { hello: async () => ({ source: [], body: { text: 'Hello' } }) },
 *   payments: {
 *     x402: {
 *       payTo: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
 *       facilitators: [{ url: 'https://facilitator.example.com' }],
 *     },
 *   },
 * })
 * createServer({ maxHeaderSize: 65_536 }, app.callback()).listen(4021)
 */
export function createRatecard(options: RatecardOptions): Promise<Ratecard> {
  return createAdapted(options, (catalog) => catalog)
}

/** As `createRatecard`, for a catalog that is served in another way than it says. */
export async function createAdapted(
  options: RatecardOptions,
  adapt: (catalog: Catalog) => Catalog,
): Promise<Ratecard> {
  const payments = readPayments(options)
  const { catalog: place, handlers = {}, secrets = {}, logger = console, runtime = {} } = options
  const { dataDir = '.ratecard' } = options
  const { fetch: fetcher, ...sources } = runtime
  const names = Object.keys(handlers)
  const baseUrl = new URL(options.baseUrl).origin
  const log = (line: string): void => logger.warn(line)
  const read = (): Catalog => {
    const { catalog, warnings, text } = loadServed(place, names, baseUrl)
    const file = typeof place === 'string' ? place : 'catalog.yaml'
    for (const issue of warnings) log(formatIssue(issue, file, text))
    return adapt(catalog)
  }
  const catalog = read()
  const cache = await openCache(options.cache, 'cache', log)
  if ('fault' in cache) throw new OptionError([cache.fault])
  const ledgerPlace = { directory: join(dataDir, 'ledger'), redisUrl: options.ledger }
  const { ledger } = await openLedger(ledgerPlace).catch(async (fault: unknown) => {
    await cache.store.close()
    throw fault
  })
  const closeStores = async (): Promise<void> => {
    await cache.store.close()
    await ledger.close()
  }
  try {
    const app = openRatecard({
      catalog,
      read,
      handlers,
      payments,
      names: OPTIONS,
      ledger,
      cache: cache.store,
      secret: typeof secrets === 'function' ? secrets : (name) => secrets[name],
      baseUrl,
      mcpUrls: options.mcpUrls ?? {},
      trustProxy: options.trustProxy ?? false,
      observe: options.onRequest,
      runtime: { ...world, ...sources, ...(fetcher === undefined ? {} : { fetcher, caller: fetcher }) },
      log,
      report: (fault) => logger.error(fault),
    })
    let closing: Promise<void> | undefined
    return {
      koa: app.service.koa,
      get catalog() {
        return summaryOf(app.service.revision().catalog)
      },
      callback: () => app.service.koa.callback(),
      reload: app.reload,
      close: () => (closing ??= app.close().then(closeStores)),
    }
  } catch (fault) {
    await closeStores()
    throw fault
  }
}

function summaryOf({ service, revision, operations, routes }: Catalog): ServedCatalog {
  return {
    title: service.name,
    version: service.version,
    revision,
    operations: operations.map((operation) => ({
      id: operation.id,
      summary: operation.summary,
      price: operation.price === undefined ? undefined : formatPrice(operation.price),
      paths: routes.filter((route) => route.operation === operation).map(({ path }) => path),
    })),
  }
}

/** Everything that it takes to serve, complete: the defaults are with `createRatecard` and with the command. */
export interface RatecardSettings {
  readonly catalog: Catalog
  /** The catalog as it is now, for a reload. Throws `CatalogError`. */
  readonly read: () => Catalog
  readonly handlers: HandlerMap
  /** An empty payee is that of the catalog. */
  readonly payments: PaymentConfig
  readonly names: SettingNames
  /** Left open by `close`: closing it is up to the caller. */
  readonly ledger: Ledger
  readonly cache: CacheStore
  /** Value of a credential that the catalog names. */
  readonly secret: (name: string) => string | undefined
  readonly baseUrl: string
  readonly mcpUrls: Readonly<Record<string, string>>
  readonly trustProxy: boolean
  readonly runtime: Runtime
  /** Called for every request. */
  readonly observe: Observe | undefined
  /** Takes a line for the operator. */
  readonly log: (line: string) => void
  /** Takes what went wrong without an answer being lost, and mistakes of handlers and of ours. */
  readonly report: (fault: unknown) => void
  readonly operator?: OperatorSettings
}

/** What the command adds to a service. */
export interface OperatorSettings {
  /** How the outside sources have done. */
  readonly figures: AllFigures
  readonly sandbox: boolean
  /** Address this process listens on; undefined while it does not. */
  readonly bound: () => string | undefined
  /** Called for every change of a payment that this process has made. */
  readonly settle: OnPaymentChange | undefined
  /** What the operator alone is shown. */
  readonly operatorRoute: OperatorRoute | undefined
}

/** A service with what the command shows of it. */
export interface OpenRatecard {
  readonly service: Service
  readonly networks: AllNetworks
  readonly reload: () => Reload
  /** Resolves when nothing uses the stores any more. */
  readonly close: () => Promise<void>
}

/** How often the networks are looked at again. */
const INSPECTION_MS = 300_000

/** Throws `OptionError` when a payment could not be taken with these settings. */
export function openRatecard(settings: RatecardSettings): OpenRatecard {
  const { catalog, handlers, names, ledger, cache, secret, baseUrl, runtime, log, report, operator } =
    settings
  const payTo = payeeOf(settings, catalog)
  const config = { ...settings.payments, payTo }
  const owner = `${process.pid}-${Buffer.from(runtime.random(9)).toString('base64url')}`
  const networks = openNetworks({ config, names, baseUrl, ledger, owner, runtime, log, report })
  const problems = [...missingConfig(catalog, config, networks, names), ...invalidConfig(config, names)]
  if (problems.length > 0) throw new OptionError(problems)
  const service = createService({
    ...runtime,
    // Processes on several machines measure leases by one clock.
    now: ledger.now,
    catalog,
    handlers,
    protocols: (revised) => protocolsOf(revised, networks, baseUrl, runtime),
    ledger,
    cache: new Cache(cache, runtime.now),
    // An upstream's host is written in the catalog, which is trusted as code is, and may well be inside: no egress, which is
    // for hosts that callers name. What the upstream says is not trusted: redirects are followed within its host.
    proxy: { fetcher: runtime.fetcher, secret, report },
    figures: operator?.figures ?? (() => new Map()),
    networks: () => networks.x402.health(),
    baseUrl,
    mcpUrls: settings.mcpUrls,
    sandbox: operator?.sandbox ?? false,
    trustProxy: settings.trustProxy,
    owner,
    report,
    bound: operator?.bound ?? (() => undefined),
    observe: settings.observe,
    settle: operator?.settle,
    operatorRoute: operator?.operatorRoute,
  })
  /** Networks that cannot be settled on are not offered, until they can. */
  const inspect = (): void => {
    const { x402 } = service.revision().catalog.payments
    if (x402 === undefined) return
    for (const look of [networks.x402.survey, networks.x402.inspect])
      void look(x402, log).then((found) => {
        if (found === 'changed') service.swap(service.revision().catalog)
      })
  }
  const inspecting = setInterval(inspect, INSPECTION_MS).unref()
  inspect()
  return {
    service,
    networks,
    reload: () => {
      const before = service.revision().catalog.revision
      const result = reload(service, settings.read, (next) => [
        ...missingConfig(next, config, networks, names),
        ...movedPayee(payTo, payeeOf(settings, next)),
      ])
      inspect()
      return typeof result === 'string'
        ? { kind: 'refused', revision: before, reason: result }
        : { kind: 'reloaded', before, revision: result.revision }
    },
    close: async () => {
      clearInterval(inspecting)
      await service.idle()
      await networks.mpp.close()
    },
  }
}

function payeeOf({ payments }: RatecardSettings, catalog: Catalog): string {
  return payments.payTo === '' ? (catalog.payments.payTo ?? '') : payments.payTo
}

/** Builds the new revision while the old one serves; a catalog that cannot be served changes nothing: resolves to why. */
function reload(
  service: Service,
  read: () => Catalog,
  problemsOf: (catalog: Catalog) => readonly string[],
): Catalog | string {
  try {
    const next = read()
    const problems = problemsOf(next)
    if (problems.length === 0) return service.swap(next).catalog
    service.refuse([{ code: 'not_servable_here' }])
    return problems.join('\n')
  } catch (fault) {
    if (fault instanceof CatalogError) {
      // Only the places: the words of an issue could quote what must not be public, such as a key in the wrong place.
      const errors = fault.issues.filter(({ severity }) => severity === 'error')
      service.refuse(errors.map(({ code, position: { line, column } }) => ({ code, line, column })))
      return fault.message
    }
    service.refuse([{ code: 'unexpected' }])
    return `unexpected: ${fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)}`
  }
}
