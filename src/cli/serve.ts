import cluster from 'node:cluster'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type CatalogReader, type LoadedHandlers, readAtStart } from '../engine/app/catalog-thread.ts'
import type { Catalog } from '../engine/catalog/catalog.ts'
import { CatalogError, formatIssue } from '../engine/catalog/issue.ts'
import type { Mark } from '../engine/catalog/load.ts'
import { openCache, openLedger } from '../engine/app/compose.ts'
import { Failure, LedgerError } from '../engine/base/errors.ts'
import type { HandlerMap } from '../engine/handler.ts'
import { attach, createHttpServer } from '../engine/http/server.ts'
import { DELIVERED_MS } from '../engine/http/deliveries.ts'
import { closeServer, handOver } from '../engine/http/shutdown.ts'
import { OptionError } from '../engine/app/options.ts'
import { openRatecard } from '../engine/app/ratecard.ts'
import { namesOf } from '../engine/app/catalog-reload.ts'
import { systemRuntime } from '../engine/base/runtime.ts'
import type { SourceFigures } from '../engine/service-definition.ts'
import { readTestAddresses } from '../sandbox/known-keys.ts'
import type { Call, Terminal } from './command.ts'
import { handlersFor } from './load.ts'
import { createErrorReporter, openLog } from './log.ts'
import { openMetrics } from './metrics.ts'
import {
  baseUrlOf,
  inSandbox,
  paymentConfig,
  playMoneyProblems,
  sandboxProblems,
  VARIABLES,
  withStandIns,
} from './payment-config.ts'
import { metricsRoute, openMetricsPort, openPort } from './port.ts'
import { openTerms, resaleTerms } from './resale-terms.ts'
import { endOnUncaughtError, listenToSignals } from './signals.ts'
import { printBanner } from './startup-banner.ts'
import { joinSupervisor, supervise } from './supervisor.ts'
import { Watch } from './watch.ts'

export async function serve(call: Call): Promise<number> {
  const plan = planOf(call)
  if (plan === undefined) return 64
  const problems = [
    ...(plan.sandbox ? sandboxProblems(call.env) : []),
    // Stand-ins invent their answers: nobody may be charged real money for them.
    ...(plan.offline && !plan.sandbox
      ? ['--offline answers with invented data and goes with --sandbox only']
      : []),
    ...(plan.offline && call.service.standIns === undefined
      ? ['--offline: this service has no local replacements for outside sources']
      : []),
  ]
  if (problems.length > 0) return refuse(call.terminal, problems)
  try {
    if (!plan.watch || cluster.isWorker) return await run(call, plan)
    return await supervise(call.terminal, () => startChains(plan, call.terminal))
  } catch (fault) {
    if (fault instanceof LedgerError) return refuse(call.terminal, [fault.message])
    if (fault instanceof OptionError) return refuse(call.terminal, [...fault.problems, TRY_SANDBOX])
    if (!(fault instanceof CatalogError)) throw fault
    call.terminal.err(`${fault.message}\n\n${plan.file}: not served`)
    return 1
  }
}

const TRY_SANDBOX = 'to try it without any of this: npx ratecard serve --sandbox'

interface Plan {
  readonly file: string
  readonly port: number
  readonly sandbox: boolean
  readonly offline: boolean
  readonly watch: boolean
  /** Refuses sources whose terms do not allow resale. */
  readonly productionStrict: boolean
  readonly dataDir: string
}

function planOf({ flags, env, terminal }: Call): Plan | undefined {
  const port = flags.text('port')
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= 65535)) {
    terminal.err('ratecard serve: --port takes a number from 0 to 65535')
    return undefined
  }
  return {
    file: flags.text('catalog') ?? env.catalog,
    port: port === undefined ? env.port : Number(port),
    sandbox: flags.given('sandbox'),
    offline: flags.given('offline'),
    watch: flags.given('watch'),
    productionStrict: flags.given('production-strict'),
    dataDir: flags.text('data-dir') ?? env.dataDir,
  }
}

/** As long as a signed payment is valid: what is paid for by then is answered before the process ends. */
const DRAIN_MS = 60_000
/** What is in flight after an error that nobody has caught: what is paid for is answered by the next process. */
const FAULT_DRAIN_MS = 1_000

async function run(call: Call, plan: Plan): Promise<number> {
  const { terminal, env, service: definition, context } = call
  const supervisor = plan.watch ? await joinSupervisor() : undefined
  const signals = supervisor ?? listenToSignals()
  const server = createHttpServer({ headers: plan.sandbox ? { 'Ratecard-Sandbox': '1' } : {} })
  const watch = new Watch(() => performance.now())
  /** The last to be opened is closed first. */
  const closing: (() => Promise<unknown>)[] = []
  let closed = Promise.resolve()
  /** A second call waits for the first: an exit while a store is being closed may never end. */
  const close = (): Promise<void> =>
    (closed = closed.then(async () => {
      for (const each of closing.splice(0).reverse()) {
        // One that fails must not keep the others open: a chain would outlive its sandbox.
        await each().catch((fault: unknown) => terminal.err(`stopping: ${String(fault)}`))
      }
    }))
  const end = async (drainMs: number): Promise<void> => {
    watch.stop()
    await closeServer(server, drainMs)
    await close()
  }
  endOnUncaughtError(
    (line) => terminal.err(env.hide(line)),
    () => end(FAULT_DRAIN_MS),
  )
  try {
    const standIns = plan.offline ? await definition.standIns?.(context) : undefined
    if (standIns !== undefined) closing.push(() => standIns.stop())
    const shipped = standIns?.handlers ?? (await definition.handlers(context))
    const loaded = await handlersFor(call, plan.file, shipped)
    const figures = definition.sources ?? (() => new Map<string, SourceFigures>())
    const read = async (reader: CatalogReader, known: LoadedHandlers): Promise<Catalog> => {
      const files = new Map<string, Mark>()
      try {
        const { catalog, warnings, text } = await reader(plan.file, known, baseUrlOf(env), files)
        for (const issue of warnings) terminal.err(formatIssue(issue, plan.file, text))
        return standIns === undefined ? catalog : withStandIns(catalog, standIns)
      } finally {
        watch.note(files)
        supervisor?.report({ kind: 'read', files: Array.from(files) })
      }
    }
    const before = supervisor?.before
    const declared = await read(readAtStart, { handlers: Object.keys(loaded), served: before?.names })
    if (plan.productionStrict) {
      const problems = resaleTerms(declared).flatMap((source) => {
        const open = openTerms(source)
        return open === undefined ? [] : [`source ${source.name}: ${open}`]
      })
      if (problems.length > 0) return refuse(terminal, problems)
    }
    const host = plan.sandbox ? '127.0.0.1' : env.host
    const port = before?.port ?? (await openPort(server, plan.port, host))
    const baseUrl = baseUrlOf({ ...env, port })
    if (supervisor === undefined) closing.push(await startChains(plan, terminal))
    const sandbox = plan.sandbox
      ? (await import('../sandbox/sandbox.ts')).readSandbox({ directory: plan.dataDir, baseUrl })
      : undefined
    // Play money stays on this machine; payments go to Redis as soon as there is one.
    const ledgerPlace =
      sandbox === undefined
        ? { ...env, directory: join(plan.dataDir, 'ledger') }
        : { directory: sandbox.ledgerDirectory, redisUrl: undefined }
    const { ledger, title } = await openLedger(ledgerPlace)
    closing.push(() => ledger.close())
    const stores = await definition.stores?.(context, {
      handlers: declared.operations.filter(({ planned }) => !planned).map(({ handler }) => handler),
      dataDir: plan.dataDir,
      payments: plan.sandbox ? 'sandbox' : 'real',
      sources: plan.offline ? 'stand-ins' : 'live',
      replaces: before !== undefined,
    })
    if (stores !== undefined) closing.push(() => stores.close())
    const cache = await openCacheFor(call, plan)
    if ('fault' in cache) return refuse(terminal, [cache.fault])
    closing.push(() => cache.store.close())
    const payments = paymentConfig(call, declared, sandbox)
    const prepare = (catalog: Catalog): Catalog =>
      sandbox === undefined ? catalog : inSandbox(catalog, sandbox)
    const catalog = prepare(declared)
    const unavailable = unavailableHandlers(stores?.unavailable ?? {})
    const handlers: HandlerMap = { ...loaded, ...unavailable }
    if (sandbox === undefined) {
      const problems = playMoneyProblems(payments, readTestAddresses(plan.dataDir))
      if (problems.length > 0) return refuse(terminal, problems)
    }
    const log = await openLog(env.logLevel, terminal, env.hide)
    if (log !== undefined) closing.push(() => log.close())
    const metrics =
      env.metrics.port === undefined && env.metrics.token === undefined
        ? undefined
        : await openMetrics({
            ledger,
            now: systemRuntime.now,
            figures,
            health: () => opened.networks.x402.health(),
            revision: () => opened.service.revision().catalog.revision,
            rpcUrls: payments.rpcUrls,
            ledgerFile:
              ledgerPlace.redisUrl === undefined ? join(ledgerPlace.directory, 'data.mdb') : undefined,
          })
    const opened = await openRatecard({
      catalog,
      read: async (reader, known) => prepare(await read(reader, known)),
      handlers,
      // One that the catalog names is read there, so that a reload sees it change.
      payments: { ...payments, payTo: sandbox?.evm.payTo ?? env.payTo ?? '' },
      names: VARIABLES,
      ledger,
      cache: cache.store,
      secret: env.secret,
      baseUrl,
      mcpUrls: env.mcpUrls,
      mcpOrigins: env.mcpOrigins,
      trustProxy: env.trustProxy,
      runtime:
        metrics === undefined
          ? systemRuntime
          : { ...systemRuntime, caller: metrics.countCalls(systemRuntime.caller) },
      observe: (access) => {
        log?.observe(access)
        metrics?.observe(access)
      },
      log: terminal.err,
      report: createErrorReporter(terminal, systemRuntime.now, env.hide),
      operator: {
        figures,
        sandbox: sandbox !== undefined,
        bound: () => host,
        settle: metrics?.settle,
        operatorRoute: metrics === undefined ? undefined : metricsRoute(env.metrics, metrics),
      },
    })
    closing.push(() => opened.close())
    if (sandbox !== undefined) opened.service.koa.use(sandbox.wallet)
    attach(server, opened.service.koa)
    if (metrics !== undefined && env.metrics.port !== undefined)
      closing.push(await openMetricsPort(env.metrics.port, host, metrics))
    const reportServing = (): void =>
      supervisor?.report({
        kind: 'serving',
        served: { names: namesOf(opened.service.revision().catalog), port },
      })
    const restart = plan.watch ? '' : ' (new handler code needs a restart)'
    const again = async (): Promise<void> => {
      const result = await opened.reload(handlers)
      terminal.err(
        result.kind === 'refused'
          ? `${result.reason}\n\n${plan.file}: still serving revision ${result.revision}`
          : `${plan.file}: revision ${result.before} → ${result.revision}${restart}`,
      )
      reportServing()
    }
    signals.onReload(() => void again())
    watch.start(again)
    if (before !== undefined) await openPort(server, plan.port, host)
    else
      printBanner(call, opened.service, {
        ledger: title,
        cache: cache.title,
        stores: stores?.lines ?? [],
        catalog,
        paymentNetworks: opened.networks,
        recipient: payments.mppRecipient,
        baseUrl,
        dataDir: plan.dataDir,
        sandbox: plan.sandbox,
        port,
        host,
      })
    reportServing()
    void signals.stopped.then(() => terminal.err('stopping: requests in flight are finished first'))
    const replaced = supervisor?.replaced.then(async () => {
      watch.stop()
      const handingOver = handOver(server, port, host)
      supervisor.report({ kind: 'left' })
      const { closed } = await handingOver
      await delay(DELIVERED_MS)
      await close()
      await closed
    })
    await Promise.race([signals.stopped, ...(replaced === undefined ? [] : [replaced])])
    return 0
  } finally {
    await end(DRAIN_MS)
  }
}

/** Starts the chains of the sandbox in this process; resolves to what ends them. */
async function startChains({ sandbox, dataDir }: Plan, { err }: Terminal): Promise<() => Promise<void>> {
  if (!sandbox) return async () => undefined
  const { startSandbox } = await import('../sandbox/sandbox.ts')
  return startSandbox({ directory: dataDir, random: systemRuntime.random, log: err })
}

/** Shared as soon as there is a Redis, but never by the sandbox: what stand-ins say is not for those who pay. */
async function openCacheFor({ env, terminal }: Call, { sandbox }: Plan): ReturnType<typeof openCache> {
  if (sandbox) return openCache(undefined, '', terminal.err)
  const variable = env.cacheRedisUrl === undefined ? 'REDIS_URL' : 'CACHE_REDIS_URL'
  const cache = await openCache(env.cacheRedisUrl ?? env.redisUrl, variable, terminal.err)
  return env.cacheRedisUrl === undefined && env.redisUrl === undefined
    ? { ...cache, title: 'in-process (set REDIS_URL to share)' }
    : cache
}

/** Handlers whose store another process holds answer 503 `not_configured`. */
function unavailableHandlers(reasons: Readonly<Record<string, string>>): HandlerMap {
  return Object.fromEntries(
    Object.entries(reasons).map(([name, reason]) => [
      name,
      { run: () => Promise.reject(new Failure('not_configured', reason)), configured: false },
    ]),
  )
}

function refuse({ err }: Terminal, problems: readonly string[]): number {
  for (const problem of problems) err(`ratecard serve: ${problem}`)
  return 1
}
