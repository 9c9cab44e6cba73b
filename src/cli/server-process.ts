import cluster from 'node:cluster'
import { dirname, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { namesOf } from '../engine/app/catalog-reload.ts'
import { OptionError } from '../engine/app/options.ts'
import { openRatecard, type OpenRatecard, type Prepared } from '../engine/app/ratecard.ts'
import { StoresOfService } from '../engine/app/service-stores.ts'
import { VARIABLES } from '../engine/app/option-names.ts'
import { ResourceStack } from '../engine/base/resource-stack.ts'
import { systemRuntime } from '../engine/base/runtime.ts'
import type { Catalog } from '../engine/catalog/catalog.ts'
import type { HandlerMap } from '../engine/handler.ts'
import { DELIVERED_MS } from '../engine/http/deliveries.ts'
import { attach, createHttpServer, type HttpServer } from '../engine/http/server.ts'
import { closeServer, handOver } from '../engine/http/shutdown.ts'
import type { StandIns } from '../engine/service-definition.ts'
import { readTestAddresses } from '../sandbox/known-keys.ts'
import { createConsole, type Console } from '../console/console.ts'
import { payerKeys } from '../engine/app/payer-keys.ts'
import { SalesFunnel } from '../engine/usage/sales-funnel.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { networkHealth } from '../engine/app/compose.ts'
import { refundKeysOf } from './payments/refund-keys.ts'
import { consoleSources } from './console-sources.ts'
import type { Call } from './command.ts'
import { handlersFor } from './load-handlers.ts'
import { keptRevisions } from './open-kept-revisions.ts'
import type { Log } from './log.ts'
import { openMetrics, type Metrics } from './metrics.ts'
import {
  baseUrlOf,
  inSandbox,
  namesSolana,
  optionsOf,
  paymentConfig,
  playMoneyProblems,
  sandboxPayments,
  withStandIns,
} from './payment-config.ts'
import { metricsRoute, openMetricsPort, openPort } from './port.ts'
import { openTerms, resaleTerms } from './resale-terms.ts'
import { endOnUncaughtError, listenToSignals, type Signals } from './signals.ts'
import { printBanner } from './startup-banner.ts'
import { joinSupervisor, type Supervisor } from './supervised-process.ts'
import type { News, Worker } from './supervisor-messages.ts'
import { Watch } from './watch.ts'

/** What a server is to serve, and how. */
export interface Plan {
  readonly file: string
  readonly port: number
  readonly sandbox: boolean
  readonly offline: boolean
  readonly watch: boolean
  /** How many processes serve together. */
  readonly workers: number
  /** How long requests are still taken after a SIGTERM, in milliseconds. */
  readonly drainMs: number
  /** Port of the console, 0 for any; undefined: there is none. */
  readonly consolePort: number | undefined
  /** Refuses sources whose terms do not allow resale. */
  readonly productionStrict: boolean
  readonly dataDir: string
}

/** As long as a signed payment is valid: what is paid for by then is answered before the process ends. */
const FINISH_MS = 60_000
/** Time for requests in flight after an uncaught error, in milliseconds: the next process answers what is paid for. */
const FAULT_FINISH_MS = 1_000

/** What one process serves with. */
interface ServerProcess {
  readonly call: Call
  readonly plan: Plan
  readonly log: Log
  readonly server: HttpServer
  /** The address that it listens on. */
  readonly host: string
  readonly watch: Watch
  readonly supervisor: Supervisor | undefined
  readonly opened: ResourceStack
}

/** Serves a catalog until a signal ends the process, or another one replaces it. Resolves to the exit code. */
export async function runServer(call: Call, plan: Plan, log: Log): Promise<number> {
  const { env } = call
  const { drainMs } = plan
  const supervisor = cluster.isWorker ? await joinSupervisor() : undefined
  const signals = supervisor ?? listenToSignals(drainMs)
  const server = createHttpServer({ headers: plan.sandbox ? { 'Ratecard-Sandbox': '1' } : {} })
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
  const { service: definition, context } = call
  const { before, worker = ALONE } = supervisor ?? {}
  const env = { ...call.env, signerKeys: keysOf(call.env.signerKeys, worker) }
  const serviceStores = new StoresOfService()
  const making = { ...context, stores: serviceStores.get }
  const standIns = plan.offline ? await definition.standIns?.(making) : undefined
  if (standIns !== undefined) opened.defer(() => standIns.stop())
  const shipped = standIns?.handlers ?? (await definition.handlers(making))
  const handlers = await handlersFor(call, plan.file, shipped)
  const figures = definition.sources ?? (() => new Map())
  const opening =
    plan.consolePort === undefined || worker.place > 0
      ? undefined
      : createConsole(
          {
            port: plan.consolePort,
            keys: before?.consoleKeys,
            random: systemRuntime.random,
            announce: (address) =>
              log.write({ level: 'info', event: 'start', message: `console: ${address}` }),
            report: (fault) => log.error(fault),
          },
          systemRuntime.now,
        )
  const tell =
    plan.consolePort === undefined || worker.place === 0
      ? undefined
      : (news: News) => supervisor?.report({ kind: 'news', news })
  supervisor?.onNews((news) => {
    if (news.kind === 'access') opening?.observe(news.access)
    else opening?.settle(news.previous, news.next)
  })
  let metrics: Metrics | undefined
  let place: Place | undefined
  let ledgerFile: string | undefined
  const ownPayers = ownPayersOf(() => app.service.revision().catalog)
  const options = {
    ...optionsOf(env),
    catalog: plan.file,
    handlers,
    dataDir: plan.dataDir,
    logger: log,
    onRequest: log.observe,
  }
  const app: OpenRatecard = await openRatecard(options, {
    names: VARIABLES,
    served: before?.names,
    kept: plan.sandbox ? undefined : keptRevisions(plan.dataDir),
    prepare: async (catalog) =>
      (place = await prepare(process, catalog, handlers, serviceStores, standIns)).prepared,
    read: (files) => {
      watch.note(files)
      supervisor?.report({ kind: 'read', files: Array.from(files) })
    },
    instrument: async (stores) => {
      ledgerFile = stores.ledgerFile
      const funnel = new SalesFunnel({ counts: stores.ledger.counts, now: stores.ledger.now, own: ownPayers })
      const writing = setInterval(() => void funnel.write().catch(log.error), WRITTEN_MS).unref()
      metrics =
        env.metricsPort === undefined && env.metricsToken === undefined
          ? undefined
          : await openMetrics({
              ledger: stores.ledger,
              ledgerFile: stores.ledgerFile,
              rpcUrls: stores.payments.rpcUrls,
              now: systemRuntime.now,
              figures,
              others: supervisor,
              health: () => networkHealth(app.networks),
              revision: () => app.service.revision().catalog.revision,
              isRefused: () => app.service.refused() !== undefined,
              denyLists: () =>
                app.service.revision().catalog.payments.denyLists.map((name) => ({
                  name,
                  path: resolve(dirname(plan.file), name),
                })),
            })
      return {
        figures,
        sandbox: plan.sandbox,
        bound: () => host,
        settle: (previous, next) => {
          funnel.settle(previous, next)
          opening?.settle(previous, next)
          tell?.({ kind: 'change', previous, next })
          metrics?.settle(previous, next)
        },
        observe: (access) => {
          funnel.observe(access)
          opening?.observe(access)
          tell?.({ kind: 'access', access })
          metrics?.observe(access)
        },
        close: () => {
          clearInterval(writing)
          return funnel.write()
        },
        caller: metrics?.countCalls(systemRuntime.caller),
        noteFacilitator: metrics?.noteFacilitator,
        operatorRoute: metrics === undefined ? undefined : metricsRoute(env, metrics),
      }
    },
  })
  opened.defer(() => app.close())
  if (place === undefined) throw new Error('the catalog was not prepared')
  const { port, sandbox } = place
  if (sandbox !== undefined) app.koa.use(sandbox.wallet)
  attach(server, app.koa)
  if (metrics !== undefined && env.metricsPort !== undefined)
    opened.defer(await openMetricsPort(env.metricsPort, host, metrics))
  const earlier: Started['before'] = { catalog: undefined }
  const openConsole = async (): Promise<Console | undefined> => {
    if (opening === undefined) return undefined
    opened.defer(() => opening.close())
    const sources = consoleSources({
      app,
      file: plan.file,
      baseUrl: baseUrlOf({ ...env, port }),
      sandbox: plan.sandbox,
      version: call.version,
      ledgerFile,
      kept: plan.sandbox ? undefined : keptRevisions(plan.dataDir),
      before: () => earlier.catalog,
      ownPayers,
      refundKeys:
        sandbox === undefined
          ? refundKeysOf(env)
          : (await import('../sandbox/sandbox.ts')).readRefundKeys({ directory: plan.dataDir }),
    })
    await opening.open(sources)
    return opening
  }
  // Both processes listen in one order: ports of their own choice are told apart by it.
  if (before !== undefined) await openPort(server, plan.port, host)
  const operatorConsole = await openConsole()
  if (before === undefined)
    printBanner(call, app, log, {
      cache: cacheTitle(app, call, plan),
      stores: serviceStores.lines,
      baseUrl: baseUrlOf({ ...env, port }),
      dataDir: plan.dataDir,
      sandbox: plan.sandbox,
      port,
      host,
    })
  return { app, metrics, console: operatorConsole, port, before: earlier }
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

/** Interval at which a process stores what it has counted of sales, which limits the loss when it is killed. */
const WRITTEN_MS = 2_000

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

/** Where a catalog is served. */
interface Place {
  readonly port: number
  readonly sandbox: Sandbox | undefined
  readonly prepared: Prepared
}

/** Opens what a catalog needs: the port, the chains of the sandbox and the stores of the service. */
async function prepare(
  { call, plan, log, server, host, supervisor, opened }: ServerProcess,
  catalog: Catalog,
  handlers: HandlerMap,
  stores: StoresOfService,
  standIns: StandIns | undefined,
): Promise<Place> {
  const { env, service: definition, context } = call
  const before = supervisor?.before
  if (plan.productionStrict) {
    const problems = resaleTerms(catalog).flatMap((source) => {
      const open = openTerms(source)
      return open === undefined ? [] : [`source ${source.name}: ${open}`]
    })
    if (problems.length > 0) throw new OptionError(problems)
  }
  const port = before?.port ?? (await openPort(server, plan.port, host))
  const baseUrl = baseUrlOf({ ...env, port })
  if (supervisor === undefined) opened.defer(await startChains(plan, log))
  const sandbox = plan.sandbox
    ? (await import('../sandbox/sandbox.ts')).readSandbox({ directory: plan.dataDir, baseUrl })
    : undefined
  if (sandbox !== undefined && sandbox.svm === undefined && namesSolana(catalog))
    log.write({ level: 'warn', event: 'start', message: NO_SOLANA })
  if (sandbox === undefined) {
    const problems = playMoneyProblems(paymentConfig(env, catalog), readTestAddresses(plan.dataDir))
    if (problems.length > 0) throw new OptionError(problems)
  }
  await stores.open(definition, context, catalog, {
    dataDir: plan.dataDir,
    payments: plan.sandbox ? 'sandbox' : 'real',
    sources: plan.offline ? 'stand-ins' : 'live',
    replaces: before !== undefined,
  })
  opened.defer(() => stores.close())
  const served = stores.serve(handlers)
  const inPlace = (revised: Catalog): Catalog =>
    standIns === undefined ? revised : withStandIns(revised, standIns)
  return {
    port,
    sandbox,
    prepared:
      sandbox === undefined
        ? { options: { baseUrl, handlers: served }, adapt: inPlace }
        : {
            options: { baseUrl, handlers: served, ...IN_MEMORY, payments: sandboxPayments(sandbox, env) },
            adapt: (revised) => inSandbox(inPlace(revised), sandbox),
            ledgerDirectory: sandbox.ledgerDirectory,
          },
  }
}

const NO_SOLANA = 'the sandbox has no Solana: npm install --save-dev litesvm @solana/kit'

/** Payments of play money and answers of stand-ins are never kept in the stores of the real service. */
const IN_MEMORY = { ledger: undefined, cache: undefined } as const

/** Starts the chains of the sandbox in this process; resolves to what ends them. */
export async function startChains({ sandbox, dataDir }: Plan, log: Log): Promise<() => Promise<void>> {
  if (!sandbox) return async () => undefined
  const { startSandbox } = await import('../sandbox/sandbox.ts')
  return startSandbox({
    directory: dataDir,
    random: systemRuntime.random,
    log: (message) => log.write({ level: 'info', event: 'start', message }),
  })
}

function cacheTitle({ titles }: OpenRatecard, { env }: Call, { sandbox }: Plan): string {
  const isShared = env.cacheRedisUrl !== undefined || env.redisUrl !== undefined
  return sandbox || isShared ? titles.cache : `${titles.cache} (set ${VARIABLES.ledger} to share)`
}

/** Serves the catalog as its files change. */
function serveRevisions(
  process: ServerProcess,
  { app, metrics, console: operatorConsole, port, before }: Started,
  signals: Signals,
): void {
  const { plan, log, watch, supervisor } = process
  const reportServing = (): void =>
    supervisor?.report({
      kind: 'serving',
      served: {
        names: namesOf(app.service.revision().catalog),
        port,
        consoleKeys: operatorConsole?.keys(),
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
