import { tracedFetch } from '../http/traced-requests.ts'
import { traceLedger } from '../ledger/traced-ledger.ts'
import { openTracing } from './open-tracing.ts'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import type Koa from 'koa'
import { Cache, type CacheStore } from '../cache/cache.ts'
import { type CatalogReader, isLarge, type LoadedHandlers, renderInThread } from './catalog-thread.ts'
import type { Catalog } from '../catalog/catalog.ts'
import {
  openCache,
  openLedger,
  openNetworks,
  protocolsOf,
  schemesOf,
  type AllNetworks,
  type PaymentConfig,
  networkHealth,
} from './compose.ts'
import type { Observe } from '../base/access-record.ts'
import { createService, type Renderer, type Service, type ServiceSettings } from '../http/service.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openReceiptSigner } from '../receipts/receipt-signer.ts'
import { OptionError, publicAddress, readPayments } from './options.ts'
import type { RatecardOptions } from './ratecard-options.ts'
import type { OptionNames } from './option-names.ts'
import { SETTINGS } from '../../settings.ts'
import { ResourceStack } from '../base/resource-stack.ts'
import type { Issue } from '../catalog/issue.ts'
import type { Mark } from '../catalog/load-catalog.ts'
import { inOrder } from '../x402/x402.ts'
import {
  forbiddenNetworks,
  invalidConfig,
  missingConfig,
  movedPayees,
  type Payees,
} from './config-problems.ts'
import { CatalogReload, errorsOf, type Reload } from './catalog-reload.ts'
import { CatalogSource } from './catalog-source.ts'
import { openWebhooks } from '../webhooks/webhooks.ts'
import type { KeptRevisions } from './kept-revisions.ts'
import type { OnFacilitatorOutcome } from '../x402/facilitators/observed-facilitator.ts'
import { httpOver, systemRuntime, type RpcTransport, type Runtime } from '../base/runtime.ts'

/** A catalog that is being served. */
export interface Ratecard {
  /** The Koa application; middleware added with `koa.use` answers paths that the catalog does not have. */
  readonly koa: Koa
  /** A listener for `node:http`, Express and similar: mount it at the root of its host or at `basePath`, before body parsers. */
  callback(): RequestListener
  /** Reads the catalog again and serves it from the next request on; requests in flight finish on the old one. */
  reload(): Promise<Reload>
  /**
   * From now on `/health` answers 503, and every answer closes its connection: proxies send their requests elsewhere. To be
   * called some seconds before the HTTP server is closed.
   */
  drain(): void
  /**
   * Finishes the purchases in flight, stops background work and closes the stores. Stop the HTTP server first; requests
   * that come later are answered 503, and nothing is charged for them.
   */
  close(): Promise<void>
}

/** What a program adds that serves a catalog as `ratecard serve` and `ratecard/testing` do. */
export interface Host {
  /** What messages call the settings. */
  readonly names: OptionNames
  /** Operations that the process serves which this one replaces, by name. */
  readonly served?: readonly string[] | undefined
  /** Called once the catalog is read, before anything is opened: options that follow from it. */
  readonly prepare?: (catalog: Catalog) => Promise<Prepared>
  /** Where revisions are kept, so that a restart with a broken file serves the last one. */
  readonly kept?: KeptRevisions | undefined
  /** Called after each attempt to read the catalog, with the files that were read. */
  readonly read?: (files: ReadonlyMap<string, Mark>) => void
  /** Called once the stores are open, before a request is answered: what counts and shows what happens. */
  readonly instrument?: (stores: OpenStores) => Promise<Instruments>
}

/** What an instrument may read. */
export interface OpenStores {
  readonly ledger: Ledger
  /** The file of a ledger on this machine. */
  readonly ledgerFile: string | undefined
  readonly payments: PaymentConfig
}

/** Options that follow from the catalog. */
export interface Prepared {
  readonly options?: Partial<RatecardOptions>
  /** Changes each revision before it is served. */
  readonly adapt?: (catalog: Catalog) => Catalog
  /** Folder of the ledger. Default: `ledger` in the data folder. */
  readonly ledgerDirectory?: string
}

/** What a host adds to a service for its operator. */
export interface Instruments extends Pick<
  ServiceSettings,
  'figures' | 'sandbox' | 'bound' | 'settle' | 'operatorRoute'
> {
  /** Besides `onRequest`. */
  readonly observe: Observe | undefined
  /** Sends the calls of nodes in place of `runtime`. */
  readonly caller: RpcTransport | undefined
  /** Called for each answer of a facilitator about a payment. */
  readonly noteFacilitator: OnFacilitatorOutcome | undefined
  /** Called at the end, when nothing changes any more and the stores are still open. */
  readonly close?: () => Promise<void>
}

const NO_INSTRUMENTS: Instruments = {
  figures: () => new Map(),
  sandbox: false,
  bound: () => undefined,
  settle: undefined,
  operatorRoute: undefined,
  observe: undefined,
  caller: undefined,
  noteFacilitator: undefined,
}

/** A service, with what its host shows of it. */
export interface OpenRatecard extends Ratecard {
  readonly service: Service
  readonly networks: AllNetworks
  readonly ledger: Ledger
  /** The file of a ledger on this machine. */
  readonly ledgerFile: string | undefined
  /** The kinds of the stores and their addresses, for people. */
  readonly titles: { readonly ledger: string; readonly cache: string }
  /** Who is paid, and what settles. */
  readonly payments: PaymentConfig
  /** Of the catalog file as it was read last. */
  readonly warnings: () => readonly Issue[]
}

/** Like `createRatecard`, for a host. */
export async function openRatecard(declared: RatecardOptions, host: Host): Promise<OpenRatecard> {
  const { names } = host
  readPayments(declared, names)
  const { catalog: place, handlers: known = {}, logger = console } = declared
  const log = (line: string): void => logger.warn(line)
  const report = (fault: unknown): void => logger.error(fault)
  const source = new CatalogSource({
    place,
    baseUrl: publicAddress(declared),
    kept: host.kept,
    log,
    noteFiles: host.read ?? (() => undefined),
  })
  const { catalog: first, fault } = await source.readAtStart({
    handlers: Object.keys(known),
    served: host.served,
  })
  const { adapt = (catalog) => catalog, ...prepared }: Prepared = (await host.prepare?.(first)) ?? {}
  const options = { ...declared, ...prepared.options }
  const payments = readPayments(options, names)
  const { dataDir = SETTINGS.dataDir.default, ledgerUnsafe = false, ledgerReplicas } = options
  const stores = new ResourceStack(report)
  try {
    const cache = await openCache(options.cache, names.cache, log)
    if ('fault' in cache) throw new OptionError([cache.fault])
    stores.defer(() => cache.store.close())
    const directory = prepared.ledgerDirectory ?? join(dataDir, 'ledger')
    const { ledger, title } = await openLedger({
      directory,
      redisUrl: options.ledger,
      ledgerUnsafe,
      ...(ledgerReplicas === undefined ? {} : { ledgerReplicas }),
    })
    stores.defer(() => ledger.close())
    const ledgerFile = options.ledger === undefined ? join(directory, 'data.mdb') : undefined
    const app = await compose({
      options,
      payments,
      catalog: adapt(first),
      read: async (reader, loaded) => adapt(await source.read(reader, loaded)),
      host,
      ledgerFile,
      ledger,
      cache: cache.store,
      log,
      report,
    })
    stores.defer(app.close)
    const keep = (): void => {
      try {
        source.keep(app.service.revision().catalog)
      } catch (cause) {
        log(`this revision is not kept for a restart: ${String(cause)}`)
      }
    }
    if (fault === undefined) keep()
    else {
      app.service.refuse(errorsOf(fault))
      report(fault)
      log(`serving revision ${first.revision}, which was served before`)
    }
    return {
      ...app,
      ledger,
      ledgerFile,
      titles: { ledger: title, cache: cache.title },
      warnings: () => source.warnings,
      koa: app.service.koa,
      drain: () => app.service.drain(),
      callback: () => app.service.koa.callback(),
      reload: async () => {
        const result = await app.reload()
        if (result.kind === 'reloaded') keep()
        return result
      },
      close: () => stores.close(),
    }
  } catch (fault) {
    await stores.close()
    throw fault
  }
}

/** Reads the catalog as it is now. Rejects with `CatalogError`. */
type ReadCatalog = (reader: CatalogReader, loaded: LoadedHandlers) => Promise<Catalog>

interface Parts {
  readonly options: RatecardOptions
  /** An empty payee is that of the catalog. */
  readonly payments: PaymentConfig
  readonly catalog: Catalog
  readonly read: ReadCatalog
  readonly host: Host
  readonly ledger: Ledger
  readonly ledgerFile: string | undefined
  readonly cache: CacheStore
  /** Takes a line for the operator. */
  readonly log: (line: string) => void
  readonly report: (fault: unknown) => void
}

/** How often the networks are looked at again. */
const INSPECTION_MS = 300_000

/** Rejects with `OptionError` when no payment could be accepted with these settings. */
async function compose(
  parts: Parts,
): Promise<Pick<OpenRatecard, 'service' | 'networks' | 'payments' | 'reload' | 'close'>> {
  const { options, catalog, ledgerFile, cache, log, report, host } = parts
  const tracing = await openTracing(catalog.service.version)
  const ledger = traceLedger(parts.ledger, tracing)
  const { names } = host
  const { handlers = {}, secrets = {} } = options
  const secret = typeof secrets === 'function' ? secrets : (name: string) => secrets[name]
  const baseUrl = publicAddress(options)
  const payeesIn = ({ payments: { payTo = '', payToSolana = '' } }: Catalog): Payees => ({
    payTo: parts.payments.payTo || payTo,
    payToSolana: parts.payments.payToSolana || payToSolana,
  })
  const config = { ...parts.payments, ...payeesIn(catalog) }
  const {
    observe,
    caller,
    noteFacilitator,
    close: closeInstruments,
    ...instruments
  } = (await host.instrument?.({ ledger, ledgerFile, payments: config })) ?? NO_INSTRUMENTS
  const { fetch: fetcher, ...sources } = options.runtime ?? {}
  const runtime: Runtime = {
    ...systemRuntime,
    ...sources,
    ...(fetcher === undefined ? {} : { fetcher, caller: fetcher, http: httpOver(fetcher) }),
    ...(caller === undefined ? {} : { caller }),
    tracing,
  }
  const upstreams = tracing === undefined ? runtime.fetcher : tracedFetch(runtime.fetcher, tracing)
  const owner = `${process.pid}-${Buffer.from(runtime.random(9)).toString('base64url')}`
  const networks = openNetworks({
    config,
    names,
    baseUrl,
    ledger,
    owner,
    runtime,
    log,
    report,
    noteFacilitator,
  })
  const receipts = openReceiptSigner(config.receiptKeys ?? [], baseUrl)
  const problemsOf = (revised: Catalog): string[] => [
    ...forbiddenNetworks(revised, options.payments ?? {}, names),
    ...missingConfig(revised, config, networks, names),
  ]
  const problems = [...problemsOf(catalog), ...invalidConfig(config, names)]
  if (problems.length > 0) throw new OptionError(problems)
  const render: Renderer = ({ catalog: revised, facts }) => {
    const { baseUrl, sandbox, protocols, mcpServers, didDocument } = facts
    const { x402 } = revised.payments
    const schemes = x402 === undefined ? [] : schemesOf(x402, networks)
    return renderInThread(revised, {
      baseUrl,
      sandbox,
      protocols,
      mcpServers,
      didDocument,
      ready: new Set(revised.operations.filter(facts.available).map(({ id }) => id)),
      offers: inOrder(schemes, x402?.networks ?? []),
    })
  }
  let declaredWebhooks = () => catalog.webhooks
  const webhooks = openWebhooks({
    ...runtime,
    ledger,
    owner,
    declared: () => declaredWebhooks(),
    secret,
    networks: () => networkHealth(networks),
    listings: () => networks.x402.listings(),
    log,
    report,
  })
  const serviceSettings: ServiceSettings = {
    ...runtime,
    ...instruments,
    catalog,
    handlers,
    ledger: webhooks.ledger,
    baseUrl,
    mcpUrls: options.mcpUrls ?? {},
    trustProxy: options.trustProxy ?? false,
    observe: both(options.onRequest, observe),
    report,
    // Processes on several machines measure leases by one clock.
    now: ledger.now,
    protocols: (revised) => protocolsOf(revised, networks, baseUrl, { ...runtime, receipts }),
    cache: new Cache(cache, runtime.now),
    receipts,
    // The host of an upstream is written in the catalog, which is trusted like code, and may be an internal one: the
    // egress checks are for hosts that callers name. Answers of the upstream are not trusted: redirects are followed
    // within its host.
    proxy: { fetcher: upstreams, secret, report },
    networks: () => networkHealth(networks),
    listings: () => networks.x402.listings(),
    owner,
  }
  const service = await createService(serviceSettings, isLarge(catalog) ? render : async ({ pages }) => pages)
  declaredWebhooks = () => service.revision().catalog.webhooks
  const catalogReload = new CatalogReload({
    service,
    handlers,
    read: parts.read,
    render,
    inspectSettings: (revised) => [...problemsOf(revised), ...movedPayees(config, payeesIn(revised))],
  })
  /** Networks that cannot be settled on are not offered, until they can. */
  const inspect = (): void => {
    const { x402 } = service.revision().catalog.payments
    if (x402 === undefined) return
    const { x402: evm, svm } = networks
    for (const look of [evm.survey, evm.inspect, svm.survey, svm.inspect])
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
    payments: config,
    reload: async () => {
      const result = await catalogReload.reload(handlers)
      if (result.kind === 'reloaded') inspect()
      return result
    },
    close: async () => {
      clearInterval(inspecting)
      await service.idle()
      await webhooks.close()
      await closeInstruments?.().catch(report)
      await networks.mpp.close()
    },
  }
}

function both(one: Observe | undefined, other: Observe | undefined): Observe | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return (access) => {
    one(access)
    other(access)
  }
}
