import { Cache, type CacheStore } from '../cache/cache.ts'
import type { Observe } from '../base/access-record.ts'
import { httpOver, systemRuntime, type RpcTransport, type Runtime } from '../base/runtime.ts'
import type { Tracing } from '../base/tracing.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { createService, type Renderer, type Service, type ServiceSettings } from '../http/service.ts'
import { tracedFetch } from '../http/traced-requests.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { traceLedger } from '../ledger/traced-ledger.ts'
import { openReceiptSigner } from '../receipts/receipt-signer.ts'
import { openWebhooks } from '../webhooks/webhooks.ts'
import type { X402Terms } from '../x402/scheme.ts'
import { inOrder } from '../x402/x402.ts'
import { networkHealth, openNetworks, protocolsOf, schemesOf, type AllNetworks } from './all-networks.ts'
import { CatalogReload, type Reload } from './catalog-reload.ts'
import { type CatalogReader, isLarge, type LoadedHandlers, renderInThread } from './catalog-thread.ts'
import {
  forbiddenNetworks,
  invalidConfig,
  missingConfig,
  movedPayees,
  type Payees,
} from './config-problems.ts'
import { NO_INSTRUMENTS, type Host } from './host.ts'
import { openTracing } from './open-tracing.ts'
import type { RuntimeOptions } from './option-values.ts'
import { OptionError, publicAddress, type PaymentConfig } from './options.ts'
import type { RatecardOptions } from './ratecard-options.ts'

/** Reads the catalog as it is now. Rejects with `CatalogError`. */
type ReadCatalog = (reader: CatalogReader, loaded: LoadedHandlers) => Promise<Catalog>

export interface Parts {
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

/** What a catalog is served by. */
export interface ComposedService {
  readonly service: Service
  readonly networks: AllNetworks
  /** Who is paid, and what settles. */
  readonly payments: PaymentConfig
  reload(): Promise<Reload>
  /** Finishes the purchases in flight and stops background work. The stores stay open. */
  close(): Promise<void>
}

/** Rejects with `OptionError` when no payment could be accepted with these settings. */
export async function composeService(parts: Parts): Promise<ComposedService> {
  const { options, catalog, ledgerFile, cache, log, report, host } = parts
  const { names } = host
  const { handlers = {}, secrets = {} } = options
  const secret = typeof secrets === 'function' ? secrets : (name: string) => secrets[name]
  const baseUrl = publicAddress(options)
  const tracing = await openTracing(catalog.service.version)
  const ledger = traceLedger(parts.ledger, tracing)
  const config = { ...parts.payments, ...payeesOf(catalog, parts.payments) }
  const instruments = (await host.instrument?.({ ledger, ledgerFile, payments: config })) ?? NO_INSTRUMENTS
  const { figures, sandbox, bound, settle, operatorRoute, noteFacilitator } = instruments
  const runtime = runtimeOf(options.runtime, instruments.caller, tracing)
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
    figures,
    sandbox,
    bound,
    settle,
    operatorRoute,
    catalog,
    handlers,
    ledger: webhooks.ledger,
    baseUrl,
    mcpUrls: options.mcpUrls ?? {},
    trustProxy: options.trustProxy ?? false,
    observe: both(options.onRequest, instruments.observe),
    report,
    // Processes on several machines measure leases by one clock.
    now: ledger.now,
    protocols: (revised) => protocolsOf(revised, networks, baseUrl, { ...runtime, receipts }),
    cache: new Cache(cache, runtime.now),
    receipts,
    // The host of an upstream is written in the catalog, which is trusted like code, and may be an internal one: the
    // egress checks are for hosts that callers name. Answers of the upstream are not trusted: redirects are followed
    // within its host.
    proxy: {
      fetcher: tracing === undefined ? runtime.fetcher : tracedFetch(runtime.fetcher, tracing),
      secret,
      report,
    },
    networks: () => networkHealth(networks),
    listings: () => networks.x402.listings(),
    owner,
  }
  const render = threadRenderer(networks)
  const service = await createService(serviceSettings, isLarge(catalog) ? render : async ({ pages }) => pages)
  declaredWebhooks = () => service.revision().catalog.webhooks
  const catalogReload = new CatalogReload({
    service,
    handlers,
    read: parts.read,
    render,
    inspectSettings: (revised) => [
      ...problemsOf(revised),
      ...movedPayees(config, payeesOf(revised, parts.payments)),
    ],
  })
  const inspect = (): void => {
    const { x402 } = service.revision().catalog.payments
    if (x402 === undefined) return
    inspectNetworks(networks, x402, log, () => {
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
      await instruments.close?.().catch(report)
      await networks.mpp.close()
    },
  }
}

/** Options come before the catalog. */
function payeesOf({ payments }: Catalog, config: PaymentConfig): Payees {
  return {
    payTo: config.payTo || (payments.payTo ?? ''),
    payToSolana: config.payToSolana || (payments.payToSolana ?? ''),
  }
}

/** The machine, except for what a program brings along; `caller` sends the calls of nodes in place of either. */
function runtimeOf(
  { fetch: fetcher, ...sources }: Partial<RuntimeOptions> = {},
  caller: RpcTransport | undefined,
  tracing: Tracing | undefined,
): Runtime {
  return {
    ...systemRuntime,
    ...sources,
    ...(fetcher === undefined ? {} : { fetcher, caller: fetcher, http: httpOver(fetcher) }),
    ...(caller === undefined ? {} : { caller }),
    tracing,
  }
}

/** Renders the documents of a revision in a thread, with what the networks offer at that time. */
function threadRenderer(networks: AllNetworks): Renderer {
  return ({ catalog, facts }) => {
    const { baseUrl, sandbox, protocols, mcpServers, didDocument } = facts
    const { x402 } = catalog.payments
    const schemes = x402 === undefined ? [] : schemesOf(x402, networks)
    return renderInThread(catalog, {
      baseUrl,
      sandbox,
      protocols,
      mcpServers,
      didDocument,
      ready: new Set(catalog.operations.filter(facts.available).map(({ id }) => id)),
      offers: inOrder(schemes, x402?.networks ?? []),
    })
  }
}

/**
 * Looks whether the networks can be settled on: those that cannot are not offered, until they can. Calls `changed` for each
 * look that finds another state than before.
 */
function inspectNetworks(
  { x402: evm, svm }: AllNetworks,
  x402: X402Terms,
  log: (line: string) => void,
  changed: () => void,
): void {
  for (const look of [evm.survey, evm.inspect, svm.survey, svm.inspect])
    void look(x402, log).then((found) => {
      if (found === 'changed') changed()
    })
}

function both(one: Observe | undefined, other: Observe | undefined): Observe | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return (access) => {
    one(access)
    other(access)
  }
}
