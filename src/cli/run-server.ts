import cluster from 'node:cluster'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import type { Console } from '../console/console.ts'
import type { ConsoleSources } from '../console/sources.ts'
import { namesOf } from '../engine/app/catalog-reload.ts'
import type { KeptRevisions } from '../engine/app/kept-revisions.ts'
import { VARIABLES } from '../engine/app/option-names.ts'
import { payerKeys } from '../engine/app/payer-keys.ts'
import { openRatecard, type OpenRatecard } from '../engine/app/ratecard.ts'
import { StoresOfService } from '../engine/app/service-stores.ts'
import { ResourceStack } from '../engine/base/resource-stack.ts'
import { systemRuntime } from '../engine/base/runtime.ts'
import type { Catalog } from '../engine/catalog/catalog.ts'
import { DELIVERED_MS } from '../engine/http/deliveries.ts'
import { attach, createHttpServer } from '../engine/http/server.ts'
import { closeServer, handOver } from '../engine/http/shutdown.ts'
import type { Call } from './command.ts'
import { consoleSources } from './console-sources.ts'
import { instrumentsFor, metricsFor, newsFor, show } from './instruments.ts'
import { handlersFor } from './load-handlers.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import { keptRevisions } from './open-kept-revisions.ts'
import { baseUrlOf, optionsOf } from './payment-config.ts'
import { refundKeysOf } from './payments/refund-keys.ts'
import { openMetricsPort, openPort } from './port.ts'
import { prepareCatalog, type LoadedService, type Place } from './prepare-catalog.ts'
import type { Plan, ServerProcess } from './server-process.ts'
import { endOnUncaughtError, listenToSignals, type Signals } from './signals.ts'
import { printBanner } from './startup-banner.ts'
import { joinSupervisor, type Supervisor } from './supervised-process.ts'
import type { Worker } from './supervisor-messages.ts'
import { Watch } from './watch.ts'

/** As long as a signed payment is valid: what is paid for by then is answered before the process ends. */
const FINISH_MS = 60_000
/** Time for requests in flight after an uncaught error, in milliseconds: the next process answers what is paid for. */
const FAULT_FINISH_MS = 1_000
/** How long an idle connection is kept where each edit starts a new process: the one before lives for as long. */
const WATCHED_IDLE_MS = 5_000

/** Serves a catalog until a signal ends the process, or another one replaces it. Resolves to the exit code. */
export async function runServer(call: Call, plan: Plan, log: Log): Promise<number> {
  // See `docs/decisions/serving.md`. V8 reads it at each collection.
  setFlagsFromString('--no-parallel-scavenge')
  const { env } = call
  const { drainMs } = plan
  const supervisor = cluster.isWorker ? await joinSupervisor() : undefined
  const signals = supervisor ?? listenToSignals(drainMs)
  const server = createHttpServer({
    headers: plan.sandbox ? { 'Ratecard-Sandbox': '1' } : {},
    ...(plan.watch ? { idleWithin: WATCHED_IDLE_MS } : {}),
  })
  const watch = new Watch(() => performance.now())
  const opened = new ResourceStack((fault) =>
    log.write({ level: 'error', event: 'stop', message: `stopping: ${String(fault)}` }),
  )
  const end = async (finishMs: number): Promise<void> => {
    watch.stop()
    await closeServer(server, finishMs)
    await opened.close()
  }
  endOnUncaughtError(log, async () => {
    await end(FAULT_FINISH_MS)
    await log.close()
  })
  const host = plan.sandbox ? '127.0.0.1' : env.host
  try {
    const process: ServerProcess = { call, plan, log, server, host, watch, supervisor, opened }
    const started = await start(process)
    const { app, port } = started
    serveRevisions(process, started, signals)
    await Promise.race([
      stopped(process, app, signals, drainMs),
      ...(supervisor === undefined ? [] : [replaced(process, supervisor, port)]),
    ])
    return 0
  } finally {
    await end(FINISH_MS)
  }
}

interface Started {
  readonly app: OpenRatecard
  /** Undefined when nobody may read them. */
  readonly metrics: Metrics | undefined
  readonly console: Console | undefined
  readonly port: number
  /** The catalog that was served before the last change of its file. */
  readonly before: { catalog: Catalog | undefined }
}

/** Opens everything, and answers requests. */
async function start(process: ServerProcess): Promise<Started> {
  const { call, plan, log, server, host, watch, supervisor, opened } = process
  const { env } = call
  const { before, worker = ALONE } = supervisor ?? {}
  const service = await loadService(process)
  const { handlers, stores } = service
  const console = worker.place === 0 ? await createOperatorConsole(process) : undefined
  if (console !== undefined) supervisor?.onNews((news) => show(news, console))
  const ownPayers = ownPayersOf(() => app.service.revision().catalog)
  let metrics: Metrics | undefined
  let place: Place | undefined
  const options = {
    ...optionsOf({ ...env, signerKeys: keysOf(env.signerKeys, worker) }),
    catalog: plan.file,
    handlers,
    dataDir: plan.dataDir,
    logger: log,
    onRequest: log.observe,
  }
  const app: OpenRatecard = await openRatecard(options, {
    names: VARIABLES,
    served: before?.names,
    kept: keptBy(plan),
    prepare: async (catalog) => (place = await prepareCatalog(process, catalog, service)).prepared,
    read: (files) => {
      watch.note(files)
      supervisor?.report({ kind: 'read', files: Array.from(files) })
    },
    instrument: async (openStores) => {
      metrics = await metricsFor(process, openStores, () => app)
      const viewer = worker.place === 0 ? console : newsFor(process)
      return instrumentsFor(process, openStores.ledger, { ownPayers, viewer, metrics })
    },
  })
  opened.defer(() => app.close())
  if (place === undefined) throw new Error('the catalog was not prepared')
  const { port, sandbox } = place
  if (sandbox !== undefined) app.koa.use(sandbox.wallet)
  attach(server, app.koa)
  if (metrics !== undefined && env.metricsPort !== undefined)
    opened.defer(await openMetricsPort(env.metricsPort, host, metrics))
  const started: Started = { app, metrics, console, port, before: { catalog: undefined } }
  // Both processes listen in one order: ports of their own choice are told apart by it.
  if (before !== undefined) await openPort(server, plan.port, host)
  if (console !== undefined) {
    opened.defer(() => console.close())
    await console.open(await sourcesFor(process, started, ownPayers))
  }
  if (before === undefined)
    printBanner(call, app, log, {
      cache: cacheTitle(app, call, plan),
      stores: stores.lines,
      baseUrl: baseUrlOf({ ...env, port }),
      dataDir: plan.dataDir,
      sandbox: plan.sandbox,
      port,
      host,
    })
  return started
}

/** The handlers over their sources, or over the stand-ins for these. */
async function loadService({ call, plan, opened }: ServerProcess): Promise<LoadedService> {
  const { service: definition, context } = call
  const stores = new StoresOfService()
  const making = { ...context, stores: stores.get }
  const standIns = plan.offline ? await definition.standIns?.(making) : undefined
  if (standIns !== undefined) opened.defer(() => standIns.stop())
  const shipped = standIns?.handlers ?? (await definition.handlers(making))
  return { handlers: await handlersFor(call, plan.file, shipped), stores, standIns }
}

/** Collects what happens until it is opened. */
async function createOperatorConsole({ plan, log, supervisor }: ServerProcess): Promise<Console | undefined> {
  if (plan.consolePort === undefined) return undefined
  // It compiles its pages as it is loaded.
  const { createConsole } = await import('../console/console.ts')
  return createConsole(
    {
      port: plan.consolePort,
      keys: supervisor?.before?.consoleKeys,
      random: systemRuntime.random,
      announce: (address) => log.write({ level: 'info', event: 'start', message: `console: ${address}` }),
      report: (fault) => log.error(fault),
    },
    systemRuntime.now,
  )
}

/** What the console reads. */
async function sourcesFor(
  { call, plan }: ServerProcess,
  { app, port, before }: Started,
  ownPayers: () => ReadonlySet<string>,
): Promise<ConsoleSources> {
  const { env, version } = call
  return consoleSources({
    app,
    file: plan.file,
    baseUrl: baseUrlOf({ ...env, port }),
    sandbox: plan.sandbox,
    version,
    kept: keptBy(plan),
    before: () => before.catalog,
    ownPayers,
    refundKeys: plan.sandbox
      ? (await import('../sandbox/sandbox.ts')).readRefundKeys({ directory: plan.dataDir })
      : refundKeysOf(env),
  })
}

/** Revisions of a sandbox are not kept. */
function keptBy({ sandbox, dataDir }: Plan): KeptRevisions | undefined {
  return sandbox ? undefined : keptRevisions(dataDir)
}

const ALONE: Worker = { place: 0, of: 1 }

/**
 * The accounts that a worker sends from. With as many keys as workers, none waits for an account of another one; with
 * fewer, workers share them by their leases in the ledger.
 */
function keysOf<Key>(keys: readonly Key[], { place, of }: Worker): Key[] {
  const own = place % Math.max(1, Math.min(of, keys.length))
  return keys.filter((_, index) => index % of === own)
}

/** The operator's own wallets, worked out once for each catalog. */
function ownPayersOf(catalogNow: () => Catalog): () => ReadonlySet<string> {
  let last: { readonly catalog: Catalog; readonly own: ReadonlySet<string> } | undefined
  return () => {
    const catalog = catalogNow()
    if (last?.catalog !== catalog)
      last = { catalog, own: new Set(catalog.payments.ownPayers.flatMap(payerKeys)) }
    return last.own
  }
}

function cacheTitle({ titles }: OpenRatecard, { env }: Call, { sandbox }: Plan): string {
  const isShared = env.cacheRedisUrl !== undefined || env.redisUrl !== undefined
  return sandbox || isShared ? titles.cache : `${titles.cache} (set ${VARIABLES.ledger} to share)`
}

/** Serves the catalog as its files change. */
function serveRevisions(
  process: ServerProcess,
  { app, metrics, console, port, before }: Started,
  signals: Signals,
): void {
  const { plan, log, watch, supervisor } = process
  const reportServing = (): void =>
    supervisor?.report({
      kind: 'serving',
      served: {
        names: namesOf(app.service.revision().catalog),
        port,
        consoleKeys: console?.keys(),
      },
    })
  const restart = plan.watch ? '' : ' (new handler code needs a restart)'
  const again = async (): Promise<void> => {
    const { catalog } = app.service.revision()
    const result = await app.reload()
    if (result.kind === 'reloaded' && result.before !== result.revision) before.catalog = catalog
    metrics?.noteReload(result)
    const { revision } = result
    if (result.kind === 'refused') {
      const message = `${result.reason}\n\n${plan.file}: still serving revision ${revision}`
      log.write({ level: 'error', event: 'reload_refused', message, fields: { revision } })
    } else {
      const message = `${plan.file}: revision ${result.before} → ${revision}${restart}`
      log.write({ level: 'info', event: 'reload', message, fields: { before: result.before, revision } })
    }
    reportServing()
  }
  signals.onReload(() => void again())
  watch.start(again)
  reportServing()
}

/** Resolves when a signal has stopped the process, and proxies have had the time to notice. */
async function stopped(
  { log }: ServerProcess,
  app: OpenRatecard,
  signals: Signals,
  drainMs: number,
): Promise<void> {
  const signal = await signals.stopped
  const message = 'stopping: requests in flight are finished first'
  log.write({ level: 'info', event: 'stop', message, fields: { signal } })
  if (signal === 'SIGINT' || drainMs === 0) return
  app.drain()
  await delay(drainMs)
}

/** Resolves when another process serves in place of this one, and everything is closed. */
async function replaced(
  { server, host, watch, opened }: ServerProcess,
  supervisor: Supervisor,
  port: number,
): Promise<void> {
  await supervisor.replaced
  watch.stop()
  const handingOver = handOver(server, port, host)
  supervisor.report({ kind: 'left' })
  const { closed } = await handingOver
  await delay(DELIVERED_MS)
  await opened.close()
  await closed
}
