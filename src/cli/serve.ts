import { join } from 'node:path'
import {
  attach,
  type Catalog,
  CatalogError,
  closeServer,
  createHttpServer,
  Failure,
  formatIssue,
  type HandlerMap,
  LedgerError,
  loadServed,
  openCache,
  openLedger,
  openRatecard,
  OptionError,
  type SourceFigures,
  world,
} from '../engine/internal.ts'
import { readTestAddresses } from '../sandbox/known-keys.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Call, Terminal } from './command.ts'
import { handlersFor } from './load.ts'
import { createErrorReporter, openLog } from './log.ts'
import { openMetrics } from './metrics.ts'
import { baseUrlOf, inSandbox, paymentConfig, VARIABLES, withStandIns } from './payment-config.ts'
import { metricsRoute, openMetricsPort, openPort } from './port.ts'
import { endOnUncaughtError, listenToSignals } from './signals.ts'
import { printBanner } from './startup-banner.ts'
import { offlineProblems, playMoneyProblems, sandboxProblems } from './validate-config.ts'
import { Watch } from './watch.ts'

export async function serve(call: Call): Promise<number> {
  const plan = planOf(call)
  if (plan === undefined) return 64
  const problems = [
    ...(plan.sandbox ? sandboxProblems(call.env) : offlineProblems(plan)),
    ...(plan.offline && call.service.standIns === undefined
      ? ['--offline: this service has no local replacements for outside sources']
      : []),
  ]
  if (problems.length > 0) return refuse(call.terminal, problems)
  try {
    return await run(call, plan)
  } catch (fault) {
    if (fault instanceof LedgerError) return refuse(call.terminal, [fault.message])
    if (fault instanceof OptionError) return refuse(call.terminal, [...fault.problems, TRY_SANDBOX])
    if (!(fault instanceof CatalogError)) throw fault
    call.terminal.err(`${fault.message}\n\n${plan.file}: not served`)
    return 1
  }
}

const TRY_SANDBOX = 'to try it without any of this: npm run sandbox'

interface Plan {
  readonly file: string
  readonly port: number
  readonly sandbox: boolean
  readonly offline: boolean
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
    dataDir: flags.text('data-dir') ?? env.dataDir,
  }
}

/** As long as a signed payment is valid: what is paid for by then is answered before the process ends. */
const DRAIN_MS = 60_000
/** What is in flight after an error that nobody has caught: what is paid for is answered by the next process. */
const FAULT_DRAIN_MS = 1_000

async function run(call: Call, plan: Plan): Promise<number> {
  const { terminal, env, service: definition, context } = call
  const signals = listenToSignals()
  const server = createHttpServer({ headers: plan.sandbox ? { 'Ratecard-Sandbox': '1' } : {} })
  const watch = new Watch(() => performance.now())
  /** The last to be opened is closed first. */
  const closing: (() => Promise<unknown>)[] = []
  const end = async (drainMs: number): Promise<void> => {
    watch.stop()
    await closeServer(server, drainMs)
    for (const close of closing.splice(0).reverse()) {
      // One that fails must not keep the others open: a chain would outlive its sandbox.
      await close().catch((fault: unknown) => terminal.err(`stopping: ${String(fault)}`))
    }
  }
  endOnUncaughtError(
    (line) => terminal.err(env.hide(line)),
    () => end(FAULT_DRAIN_MS),
  )
  try {
    const standIns = plan.offline ? await definition.standIns?.(context) : undefined
    if (standIns !== undefined) closing.push(() => standIns.stop())
    const handlers = await handlersFor(call, plan.file, standIns?.handlers)
    const names = Object.keys(handlers)
    const figures = definition.sources ?? (() => new Map<string, SourceFigures>())
    const read = (): Catalog => {
      watch.begin()
      const { catalog, warnings, text } = loadServed(plan.file, names, baseUrlOf(env), (path) =>
        watch.note(path),
      )
      for (const issue of warnings) terminal.err(formatIssue(issue, plan.file, text))
      return standIns === undefined ? catalog : withStandIns(catalog, standIns)
    }
    const declared = read()
    const host = plan.sandbox ? '127.0.0.1' : env.host
    const port = await openPort(server, plan.port, host)
    const baseUrl = baseUrlOf({ ...env, port })
    const sandbox = plan.sandbox ? await openSandbox(plan.dataDir, baseUrl, terminal.err) : undefined
    if (sandbox !== undefined) closing.push(() => sandbox.stop())
    // Play money stays on this machine; payments go to Redis as soon as there is one.
    const { ledger, title } = await openLedger(
      sandbox === undefined
        ? { ...env, directory: join(plan.dataDir, 'ledger') }
        : { directory: sandbox.ledgerDirectory },
    )
    closing.push(() => ledger.close())
    const stores = await definition.stores?.(context, {
      handlers: declared.operations.filter(({ planned }) => !planned).map(({ handler }) => handler),
      dataDir: plan.dataDir,
      payments: plan.sandbox ? 'sandbox' : 'real',
      sources: plan.offline ? 'stand-ins' : 'live',
    })
    if (stores !== undefined) closing.push(() => stores.close())
    const cache = await openCacheFor(call, plan)
    if ('fault' in cache) return refuse(terminal, [cache.fault])
    closing.push(() => cache.store.close())
    const payments = paymentConfig(call, declared, sandbox)
    const prepare = (catalog: Catalog): Catalog =>
      sandbox === undefined ? catalog : inSandbox(catalog, sandbox)
    const catalog = prepare(declared)
    if (sandbox === undefined) {
      const problems = playMoneyProblems(payments, readTestAddresses(plan.dataDir))
      if (problems.length > 0) return refuse(terminal, problems)
    }
    const log = await openLog(env.logLevel, terminal)
    if (log !== undefined) closing.push(() => log.close())
    const metrics =
      env.metrics.port === undefined && env.metrics.token === undefined
        ? undefined
        : await openMetrics({
            ledger,
            now: world.now,
            figures,
            health: () => opened.networks.x402.health(),
            revision: () => opened.service.revision().catalog.revision,
          })
    const opened = openRatecard({
      catalog,
      read: () => prepare(read()),
      handlers: { ...handlers, ...unavailableHandlers(stores?.unavailable ?? {}) },
      // One that the catalog names is read there, so that a reload sees it change.
      payments: { ...payments, payTo: sandbox?.evm.payTo ?? env.payTo ?? '' },
      names: VARIABLES,
      ledger,
      cache: cache.store,
      secret: env.secret,
      baseUrl,
      mcpUrls: env.mcpUrls,
      trustProxy: env.trustProxy,
      runtime: world,
      observe: (access) => {
        log?.observe(access)
        metrics?.observe(access)
      },
      log: terminal.err,
      report: createErrorReporter(terminal, world.now, env.hide),
      operator: {
        figures,
        sandbox: sandbox !== undefined,
        bound: () => host,
        settle: metrics?.settle,
        operatorRoute: metrics === undefined ? undefined : metricsRoute(env.metrics, metrics),
      },
    })
    closing.push(() => opened.close())
    attach(server, opened.service.koa)
    if (metrics !== undefined && env.metrics.port !== undefined)
      closing.push(await openMetricsPort(env.metrics.port, host, metrics))
    const again = (): void => {
      const result = opened.reload()
      terminal.err(
        result.kind === 'refused'
          ? `${result.reason}\n\n${plan.file}: still serving revision ${result.revision}`
          : `${plan.file}: revision ${result.before} → ${result.revision} (new handler code needs a restart)`,
      )
    }
    signals.onReload(again)
    watch.start(again)
    printBanner(call, opened.service, {
      ledger: title,
      cache: cache.title,
      stores: stores?.lines ?? [],
      catalog,
      tills: opened.networks,
      recipient: payments.mppRecipient,
      baseUrl,
      dataDir: plan.dataDir,
      sandbox: plan.sandbox,
      port,
      host,
    })
    await signals.stopped
    terminal.err('stopping: requests in flight are finished first')
    return 0
  } finally {
    await end(DRAIN_MS)
  }
}

async function openSandbox(
  directory: string,
  baseUrl: string,
  log: (line: string) => void,
): Promise<Sandbox> {
  const sandbox = await import('../sandbox/sandbox.ts')
  return sandbox.openSandbox({ directory, baseUrl, random: world.random, log })
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
