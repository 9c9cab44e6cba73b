import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import type Koa from 'koa'
import { Cache, type CacheStore } from '../cache/cache.ts'
import {
  type CatalogReader,
  isLarge,
  type LoadedHandlers,
  readAtStart,
  renderInThread,
} from './catalog-thread.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { formatIssue } from '../catalog/issue.ts'
import {
  openCache,
  openLedger,
  openNetworks,
  protocolsOf,
  schemesOf,
  type AllNetworks,
  type PaymentConfig,
} from './compose.ts'
import type { HandlerMap } from '../handler.ts'
import { createService, type Renderer, type Service, type ServiceSettings } from '../http/service.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { OptionError, OPTIONS, readPayments, type RatecardOptions } from './options.ts'
import { invalidConfig, missingConfig, movedPayee } from './config-problems.ts'
import type { SettingNames } from '../payment/setting-names.ts'
import { CatalogReload, type Reload } from './catalog-reload.ts'
import { systemRuntime, type Runtime } from '../base/runtime.ts'

/** A catalog that is being served. */
export interface Ratecard {
  /** The Koa application; middleware added with `koa.use` answers paths that the catalog does not have. */
  readonly koa: Koa
  /** A listener for `node:http`, Express and similar: mount it at the root of its host, before body parsers. */
  callback(): RequestListener
  /** Reads the catalog again and serves it from the next request on; requests in flight finish on the old one. */
  reload(): Promise<Reload>
  /**
   * Finishes the purchases in flight, stops background work and closes the stores. Stop the HTTP server first; requests
   * that come later are answered 503, and nothing is charged for them.
   */
  close(): Promise<void>
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

/** Like `createRatecard`, for a catalog that is served with changes. */
export async function createAdapted(
  options: RatecardOptions,
  adapt: (catalog: Catalog) => Catalog,
): Promise<Ratecard> {
  const payments = readPayments(options)
  const { catalog: place, handlers = {}, secrets = {}, logger = console, runtime = {} } = options
  const { dataDir = '.ratecard' } = options
  const { fetch: fetcher, ...sources } = runtime
  const baseUrl = new URL(options.baseUrl).origin
  const log = (line: string): void => logger.warn(line)
  const read: RatecardSettings['read'] = async (reader, loaded) => {
    const { catalog, warnings, text } = await reader(place, loaded, baseUrl, new Map())
    const file = typeof place === 'string' ? place : 'catalog.yaml'
    for (const issue of warnings) log(formatIssue(issue, file, text))
    return adapt(catalog)
  }
  const catalog = await read(readAtStart, { handlers: Object.keys(handlers) })
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
    const app = await openRatecard({
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
      mcpOrigins: options.mcpOrigins ?? [],
      trustProxy: options.trustProxy ?? false,
      observe: options.onRequest,
      runtime: {
        ...systemRuntime,
        ...sources,
        ...(fetcher === undefined ? {} : { fetcher, caller: fetcher }),
      },
      log,
      report: (fault) => logger.error(fault),
    })
    let closing: Promise<void> | undefined
    return {
      koa: app.service.koa,
      callback: () => app.service.koa.callback(),
      reload: () => app.reload(handlers),
      close: () => (closing ??= app.close().then(closeStores)),
    }
  } catch (fault) {
    await closeStores()
    throw fault
  }
}

/** Everything that it takes to serve, complete: the defaults are with `createRatecard` and with the command. */
export interface RatecardSettings extends Pick<
  ServiceSettings,
  'catalog' | 'handlers' | 'baseUrl' | 'mcpUrls' | 'mcpOrigins' | 'trustProxy' | 'observe' | 'report'
> {
  /** The catalog as it is now, for a reload. Rejects with `CatalogError`. */
  readonly read: (reader: CatalogReader, loaded: LoadedHandlers) => Promise<Catalog>
  /** An empty payee is that of the catalog. */
  readonly payments: PaymentConfig
  readonly names: SettingNames
  /** Left open by `close`: closing it is up to the caller. */
  readonly ledger: Ledger
  readonly cache: CacheStore
  /** Value of a credential that the catalog names. */
  readonly secret: (name: string) => string | undefined
  readonly runtime: Runtime
  /** Takes a line for the operator. */
  readonly log: (line: string) => void
  readonly operator?: OperatorSettings
}

/** What the command adds to a service. */
type OperatorSettings = Pick<ServiceSettings, 'figures' | 'sandbox' | 'bound' | 'settle' | 'operatorRoute'>

const NO_OPERATOR: OperatorSettings = {
  figures: () => new Map(),
  sandbox: false,
  bound: () => undefined,
  settle: undefined,
  operatorRoute: undefined,
}

/** A service, with what the command displays of it. */
export interface OpenRatecard {
  readonly service: Service
  readonly networks: AllNetworks
  /** Reads the catalog again and serves it with these handlers. */
  readonly reload: (handlers: HandlerMap) => Promise<Reload>
  /** Resolves when nothing uses the stores any more. */
  readonly close: () => Promise<void>
}

/** How often the networks are looked at again. */
const INSPECTION_MS = 300_000

/** Rejects with `OptionError` when no payment could be accepted with these settings. */
export async function openRatecard(settings: RatecardSettings): Promise<OpenRatecard> {
  const { catalog, names, ledger, cache, secret, baseUrl, runtime, log, report } = settings
  const payTo = payeeOf(settings, catalog)
  const config = { ...settings.payments, payTo }
  const owner = `${process.pid}-${Buffer.from(runtime.random(9)).toString('base64url')}`
  const networks = openNetworks({ config, names, baseUrl, ledger, owner, runtime, log, report })
  const problems = [...missingConfig(catalog, config, networks, names), ...invalidConfig(config, names)]
  if (problems.length > 0) throw new OptionError(problems)
  const render: Renderer = ({ catalog: revised, facts }) => {
    const { baseUrl, sandbox, protocols, mcpServers } = facts
    const { x402 } = revised.payments
    const schemes = x402 === undefined ? [] : schemesOf(x402, networks)
    return renderInThread(revised, {
      baseUrl,
      sandbox,
      protocols,
      mcpServers,
      ready: new Set(revised.operations.filter(facts.available).map(({ id }) => id)),
      offers: schemes.flatMap((scheme) => scheme.offers),
    })
  }
  const serviceSettings: ServiceSettings = {
    ...runtime,
    ...settings,
    ...(settings.operator ?? NO_OPERATOR),
    // Processes on several machines measure leases by one clock.
    now: ledger.now,
    protocols: (revised) => protocolsOf(revised, networks, baseUrl, runtime),
    cache: new Cache(cache, runtime.now),
    // An upstream's host is written in the catalog, which is trusted as code is, and may well be inside: no egress, which is
    // for hosts that callers name. What the upstream says is not trusted: redirects are followed within its host.
    proxy: { fetcher: runtime.fetcher, secret, report },
    networks: () => networks.x402.health(),
    listings: () => networks.x402.listings(),
    owner,
  }
  const service = await createService(serviceSettings, isLarge(catalog) ? render : async ({ pages }) => pages)
  const catalogReload = new CatalogReload({
    service,
    handlers: settings.handlers,
    read: settings.read,
    render,
    inspectSettings: (revised) => [
      ...missingConfig(revised, config, networks, names),
      ...movedPayee(payTo, payeeOf(settings, revised)),
    ],
  })
  /** Networks that cannot be settled on are not offered, until they can. */
  const inspect = (): void => {
    const { x402 } = service.revision().catalog.payments
    if (x402 === undefined) return
    for (const look of [networks.x402.survey, networks.x402.inspect])
      void look(x402, log).then((found) => {
        if (found !== 'changed') return
        void service.offerAnew().catch(report)
        void catalogReload.renderAgain().catch(report)
      })
  }
  const inspecting = setInterval(inspect, INSPECTION_MS).unref()
  inspect()
  return {
    service,
    networks,
    reload: async (loaded) => {
      const result = await catalogReload.reload(loaded)
      if (result.kind === 'reloaded') inspect()
      return result
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
