import type Koa from 'koa'
import type { Observe } from '../access.ts'
import type { Cache } from '../cache/cache.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { RefusedReload } from '../documents/status-page.ts'
import type { HandlerMap } from '../handler.ts'
import { sweepAnswers } from '../ledger/clean-up.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { NetworkHealth } from '../protocols/x402/networks.ts'
import { OFFERING_MS, RecentOffers } from '../purchase/purchase.ts'
import { recheckSettled, recover } from '../purchase/recovery.ts'
import { ConnectedBuyers, type PurchaseDeps, type Store } from '../purchase/request.ts'
import { UsageStore, meterLedger, type OnPaymentChange } from '../usage/usage.ts'
import { createApp, type OperatorRoute, type Serving } from './app.ts'
import { BackgroundTasks, Deliveries } from './reply.ts'
import type { ProxySettings } from './proxy.ts'
import { createRevision, type Revision } from './revision.ts'
import { createRouter } from './router.ts'
import type { AllFigures } from './status.ts'

export interface ServiceSettings {
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
  readonly sleep: (ms: number) => Promise<void>
  /** Address this process listens on; undefined while it does not, or when that is not known. */
  readonly bound: () => string | undefined
  readonly catalog: Catalog
  readonly handlers: HandlerMap
  /** The ways to be paid for a catalog; asked again for every revision. */
  readonly protocols: (catalog: Catalog) => readonly Protocol[]
  readonly ledger: Ledger
  readonly cache: Cache
  readonly proxy: ProxySettings
  /** How the outside sources have done. */
  readonly figures: AllFigures
  /** How settling goes on the networks that were paid on. */
  readonly networks: () => Promise<readonly NetworkHealth[]>
  readonly baseUrl: string
  /** Bases of the companion servers that have one of their own. */
  readonly mcpUrls: Readonly<Record<string, string>>
  readonly sandbox: boolean
  readonly trustProxy: boolean
  /** Name of this process in leases. */
  readonly owner: string
  readonly report: (fault: unknown) => void
  /** Called for every request. */
  readonly observe: Observe | undefined
  /** Called for every change of a payment that this process has made. */
  readonly settle: OnPaymentChange | undefined
  /** What the operator alone is shown. */
  readonly operatorRoute: OperatorRoute | undefined
}

export interface Service {
  readonly koa: Koa
  readonly revision: () => Revision
  /** Resolves when nothing uses the ledger any more. Requests that come from now on are answered 503. */
  idle(): Promise<void>
  /** Serves another catalog from the next request on; requests in flight finish on the one they began with. */
  swap(catalog: Catalog): Revision
  /** Another catalog was to be served and could not be: the status says so until one is. */
  refuse(errors: RefusedReload['errors']): void
}

/** A catalog with everything it takes to serve it. */
export function createService(settings: ServiceSettings): Service {
  const { owner, now, sleep, trustProxy, report } = settings
  const usageStore = new UsageStore({ ledger: settings.ledger, owner, now })
  const ledger = meterLedger(settings.ledger, usageStore, settings.settle)
  const desk = { ledger, owner, now }
  const tasks = new BackgroundTasks()
  const buyers = new ConnectedBuyers()
  const recentOffers = new RecentOffers(desk)
  let refused: RefusedReload | undefined
  const shared = {
    ...settings,
    tasks,
    deliveries: new Deliveries({ desk, tasks, buyers, trustProxy, report }),
    usageStore,
    refused: () => refused,
  }
  const serve = (catalog: Catalog): Serving => {
    const revision = createRevision({ ...settings, catalog, protocols: settings.protocols(catalog) })
    const purchases: PurchaseDeps = {
      ...desk,
      sleep,
      buyers,
      redeliver: catalog.payments.redeliver,
      recentOffers: (operation) => recentOffers.of(operation),
      report,
    }
    return { revision, purchases, routes: createRouter({ ...shared, purchases }, revision).routes() }
  }
  const serving = { now: serve(settings.catalog), stopping: false }
  const koa = createApp({ ...shared, serving })
  const current = (): Revision => serving.now.revision
  const offer = (): Promise<void> => recentOffers.offer(current().catalog)
  const withdraw = ({ catalog }: Revision): Promise<void> =>
    recentOffers.withdraw(catalog, current().catalog.payments.repriceGrace)
  const protocols = (): readonly Protocol[] => current().protocols
  const recovery = { ...desk, protocols, storeOf: (id: string) => storeOf(current(), id), report }
  tasks.every(OFFERING_MS / 2, () => offer().catch(report))
  tasks.every(RECOVERY_MS, () => recover(recovery).catch(report))
  void tasks.add(recheckSettled(recovery).catch(report))
  const sweep = (): Promise<unknown> => sweepAnswers(ledger, now()).catch(report)
  void tasks.add(sweep())
  tasks.every(SWEEPING_MS, sweep)
  tasks.every(WRITING_MS, () => usageStore.write().catch(report))
  void tasks.add(offer().catch(report))
  return {
    koa,
    idle: async () => {
      serving.stopping = true
      await tasks.end()
      await withdraw(current()).catch(report)
      await usageStore.write().catch(report)
    },
    revision: current,
    swap: (catalog) => {
      const before = current()
      serving.now = serve(catalog)
      if (catalog !== before.catalog) refused = undefined
      void tasks.add(withdraw(before).then(offer).catch(report))
      return current()
    },
    refuse: (errors) => {
      refused = { refused_at: new Date(now()).toISOString(), kept: current().catalog.revision, errors }
    },
  }
}

/** How often a process writes down what it has counted: as much is lost when it is killed. */
const WRITING_MS = 60_000

/** How often a process looks for answers that belong to no payment. */
const SWEEPING_MS = 3_600_000

/** How often a process looks for payments that were left behind. */
const RECOVERY_MS = 5_000

function storeOf({ catalog, operations }: Revision, id: string): Store | undefined {
  const operation = catalog.operations.find((each) => each.id === id)
  return operation === undefined ? undefined : operations.get(operation.handler)?.store
}
