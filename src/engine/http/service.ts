import type { Tracing } from '../base/tracing.ts'
import type Koa from 'koa'
import { KnownCallers } from '../purchase/known-callers.ts'
import type { Every } from '../base/every.ts'
import { PaymentLocks } from '../purchase/payment-locks.ts'
import { Cache, createMemoryCache } from '../cache/cache.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { RefusedReload } from '../documents/status-page.ts'
import type { HandlerMap } from '../handler.ts'
import { cleanUp, sweepAnswers } from '../ledger/clean-up.ts'
import type { Protocol } from '../payment/protocol.ts'
import { OFFERING_MS, RecentOffers } from '../purchase/recent-offers.ts'
import { followBlocks } from '../purchase/follow-blocks.ts'
import { deniedPayers } from '../purchase/denied-payers.ts'
import { runInBackground } from '../purchase/execution.ts'
import { recover, takeHandedOver, type RecoveryDeps } from '../purchase/recovery.ts'
import type { PurchaseDeps, Store } from '../purchase/request.ts'
import type { ReceiptSigner } from '../receipts/receipt-signer.ts'
import { UsageStore } from '../usage/usage-store.ts'
import { meterLedger, type OnPaymentChange } from '../usage/metered-ledger.ts'
import { BodyReader } from './body-reader.ts'
import { createApp, type AppSettings, type Serving } from './app.ts'
import { boundaryOf } from './boundary.ts'
import { BuyerConnections } from './buyer-connections.ts'
import { Deliveries } from './deliveries.ts'
import { BackgroundTasks } from './background-tasks.ts'
import type { LiveSettings } from './live-pages.ts'
import type { Pages } from './rendered-pages.ts'
import { createRevision, type Revision, type RevisionSettings } from './revision.ts'
import { createRouter } from './router.ts'
import type { Phase } from './stopping.ts'

export interface ServiceSettings
  extends
    Omit<RevisionSettings, 'protocols'>,
    Omit<LiveSettings, 'usageStore' | 'refused' | 'phase'>,
    Pick<AppSettings, 'bound' | 'observe' | 'openRequest' | 'operatorRoute' | 'random' | 'trustProxy'> {
  readonly sleep: (ms: number) => Promise<void>
  readonly every: Every
  /** The protocols of a catalog; called for every revision. */
  readonly protocols: (catalog: Catalog) => readonly Protocol[]
  readonly cache: Cache
  /** Undefined: no receipts are signed. */
  readonly receipts?: ReceiptSigner | undefined
  /** Name of this process in leases. */
  readonly owner: string
  /** Receives errors that did not prevent an answer, and bugs of handlers and of ours. */
  readonly report: (fault: unknown) => void
  /** Called for every change of a payment by this process. */
  readonly settle: OnPaymentChange | undefined
  readonly tracing?: Tracing | undefined
}

/** What is served, with what it was created from. */
interface Current extends Serving {
  readonly pages: Pages
  readonly handlers: HandlerMap
}

/** Renders the documents of a revision. */
export type Renderer = (revision: Revision) => Promise<Pages>

export interface Service {
  readonly koa: Koa
  readonly revision: () => Revision
  /** From now on `/health` answers 503, and every answer closes its connection. */
  drain(): void
  /** Resolves when nothing uses the ledger any more. Later requests are answered 503. */
  idle(): Promise<void>
  /**
   * Serves a catalog with these handlers as soon as it is ready; requests in flight finish on their revision. Must
   * not be called again before it resolves.
   */
  swap(catalog: Catalog, handlers: HandlerMap, render: Renderer): Promise<Revision>
  /** Offers the payments that can be accepted now; the documents stay unchanged until the next swap. */
  offerAnew(): Promise<void>
  /** Records that a new catalog was refused: the status shows it until the next swap. */
  refuse(errors: RefusedReload['errors']): void
  /** The new catalog that was refused, as long as an earlier one is served in its place. */
  refused(): RefusedReload | undefined
}

/** Creates the service of a catalog. */
export async function createService(settings: ServiceSettings, render: Renderer): Promise<Service> {
  const { owner, now, sleep, every, random, tracing, trustProxy, report } = settings
  const usageStore = new UsageStore({ ledger: settings.ledger, owner, now })
  const ledger = meterLedger(settings.ledger, usageStore, settings.settle)
  const leaseContext = { ledger, owner, now, every }
  const tasks = new BackgroundTasks()
  const buyers = new BuyerConnections()
  const locks = new PaymentLocks({ ...leaseContext, sleep })
  const recentOffers = new RecentOffers(leaseContext)
  let refused: RefusedReload | undefined
  let phase: Phase = 'serving'
  const shared = {
    ...settings,
    tasks,
    bodies: new BodyReader(),
    deliveries: new Deliveries({ leaseContext, tasks, buyers, trustProxy, report }),
    usageStore,
    knownCallers: new KnownCallers(),
    refused: () => refused,
    phase: () => phase,
  }
  const serve = async (catalog: Catalog, handlers: HandlerMap, renderer: Renderer): Promise<Current> => {
    const protocols = settings.protocols(catalog)
    const revision = createRevision({ ...settings, catalog, handlers, protocols })
    const purchases: PurchaseDeps = {
      ...leaseContext,
      sleep,
      buyers,
      locks,
      redeliver: catalog.payments.redeliver,
      denied: deniedPayers(catalog, protocols),
      payerLimit: catalog.payments.payerLimit,
      streamCredit: catalog.payments.streamCredit,
      receipts: settings.receipts,
      recentOffers: (operation, args) => recentOffers.of(operation, args),
      stopping: tasks.ending,
      report,
      tracing: settings.tracing,
    }
    // Answers of earlier handlers must not be served as those of the new ones.
    const cache = handlers === settings.handlers ? settings.cache : new Cache(createMemoryCache(), now)
    const pages = await renderer(revision)
    const router = await createRouter({ ...shared, cache, purchases }, revision, pages)
    const boundary = boundaryOf(revision, pages)
    return { revision, purchases, cache, routes: router.routes(), boundary, pages, handlers }
  }
  const serving = { now: await serve(settings.catalog, settings.handlers, render) }
  const koa = createApp({ ...shared, serving })
  const current = (): Revision => serving.now.revision
  const offer = (): Promise<void> => recentOffers.offer(current().catalog)
  const withdraw = ({ catalog }: Revision): Promise<void> =>
    recentOffers.withdraw(catalog, current().catalog.payments.repriceGrace)
  const protocols = (): readonly Protocol[] => current().protocols
  const recovery = { ...leaseContext, protocols, storeOf: (id: string) => storeOf(current(), id), report }
  tasks.nowAndEvery(OFFERING_MS / 2, () => offer().catch(report))
  lookAfterPayments(tasks, recovery)
  tasks.nowAndEvery(SWEEPING_MS, () => sweepAnswers(ledger, now()).catch(report))
  // Nothing of the ledger waits for it: it is left alone when the service stops.
  const stopBackground = every(BACKGROUND_MS, () => {
    const { cache, revision } = serving.now
    void runInBackground({ cache, now, random, tracing }, revision.operations, report)
  })
  tasks.every(WRITING_MS, () => usageStore.write().catch(report))
  return {
    koa,
    drain: () => {
      phase = 'draining'
    },
    idle: async () => {
      phase = 'stopping'
      stopBackground()
      await tasks.end()
      await withdraw(current()).catch(report)
      await Promise.all(protocols().map(async (each) => each.leave?.().catch(report)))
      await usageStore.write().catch(report)
    },
    revision: current,
    swap: async (catalog, handlers, renderer) => {
      const before = current()
      serving.now = await serve(catalog, handlers, renderer)
      if (catalog !== before.catalog) refused = undefined
      void tasks.add(withdraw(before).then(offer).catch(report))
      return current()
    },
    offerAnew: async () => {
      const { pages, handlers } = serving.now
      serving.now = await serve(current().catalog, handlers, async () => pages)
    },
    refused: () => refused,
    refuse: (errors) => {
      refused = { refused_at: new Date(now()).toISOString(), kept: current().catalog.revision, errors }
    },
  }
}

/** Interval at which a process stores what it has counted, which limits the loss when it is killed. */
const WRITING_MS = 2_000

/** Interval of the search for answers without a payment. */
const SWEEPING_MS = 3_600_000

/** Interval of what handlers do besides calls, which keep what they fetch for longer. */
const BACKGROUND_MS = 60_000

/** Interval of the search for payments of dead processes. */
const RECOVERY_MS = 2_000

/** Interval of the search for payments whose buyers wait, or which expire soon: those handed over, and those undone. */
const URGENT_MS = 1_000

/** Interval of what is not urgent. */
const UPKEEP_MS = 5_000

/**
 * Goes on with payments whose request is over or in another process: those of dead processes, those that were handed
 * over, those in blocks that may be undone, those that are over, and what the protocols do in the background.
 */
function lookAfterPayments(tasks: BackgroundTasks, deps: RecoveryDeps): void {
  const { protocols, report } = deps
  const begin = async (found: Promise<readonly Promise<void>[]>): Promise<void> => {
    for (const work of await found) void tasks.add(work.catch(report))
  }
  const follow = (which: 'due' | 'all'): Promise<void> => begin(followBlocks(deps, which)).catch(report)
  tasks.every(RECOVERY_MS, () => begin(recover(deps)).catch(report))
  tasks.every(UPKEEP_MS, () => cleanUp(deps).catch(report))
  tasks.every(URGENT_MS, () => begin(takeHandedOver(deps)).catch(report))
  tasks.every(URGENT_MS, () => follow('due'))
  // From now on buyers sign what only this process can settle, and may send it to another one.
  tasks.nowAndEvery(UPKEEP_MS, async () => {
    await Promise.all(protocols().map(async (each) => each.background?.().catch(report)))
  })
  void tasks.add(follow('all'))
}

function storeOf({ catalog, operations }: Revision, id: string): Store | undefined {
  const operation = catalog.operations.find((each) => each.id === id)
  return operation === undefined ? undefined : operations.get(operation.handler)?.store
}
