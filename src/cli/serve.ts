import { randomBytes } from 'node:crypto'
import {
  Cache,
  type Catalog,
  CatalogError,
  closeServer,
  createHttpServer,
  createService,
  Failure,
  formatIssue,
  type HandlerMap,
  LedgerError,
  type SourceFigures,
} from '../engine/index.ts'
import { readTestAddresses } from '../sandbox/known-keys.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Call, Terminal } from './command.ts'
import { openMpp, openNetworks, protocolsOf, world } from './compose.ts'
import { handlersFor, loadServed } from './load.ts'
import { createErrorReporter, openLog } from './log.ts'
import { openMetrics } from './metrics.ts'
import { inSandbox, paymentConfig, withStandIns } from './payment-config.ts'
import { metricsRoute, openMetricsPort, openPort } from './port.ts'
import { reload } from './reload.ts'
import { endOnUncaughtError, listenToSignals } from './signals.ts'
import { printBanner } from './startup-banner.ts'
import { openCache, openLedger } from './stores.ts'
import {
  missingConfig,
  invalidConfig,
  movedPayee,
  offlineProblems,
  playMoneyProblems,
  sandboxProblems,
} from './validate-config.ts'
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
    if (!(fault instanceof CatalogError)) throw fault
    call.terminal.err(`${fault.message}\n\n${plan.file}: not served`)
    return 1
  }
}

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

/** How often the networks are looked at again. */
const INSPECTION_MS = 300_000

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
      const { catalog, warnings, text } = loadServed(plan.file, names, env, (path) => watch.note(path))
      for (const issue of warnings) terminal.err(formatIssue(issue, plan.file, text))
      return standIns === undefined ? catalog : withStandIns(catalog, standIns)
    }
    const declared = read()
    const host = plan.sandbox ? '127.0.0.1' : env.host
    const port = await openPort(server, plan.port, host)
    const baseUrl = env.baseUrl ?? `http://localhost:${port}`
    const sandbox = plan.sandbox ? await openSandbox(plan.dataDir, baseUrl, terminal.err) : undefined
    if (sandbox !== undefined) closing.push(() => sandbox.stop())
    const { ledger, title } = await openLedger(env, plan.dataDir, sandbox)
    closing.push(() => ledger.close())
    const stores = await definition.stores?.(context, {
      handlers: declared.operations.filter(({ planned }) => !planned).map(({ handler }) => handler),
      dataDir: plan.dataDir,
      payments: plan.sandbox ? 'sandbox' : 'real',
      sources: plan.offline ? 'stand-ins' : 'live',
    })
    if (stores !== undefined) closing.push(() => stores.close())
    const cache = await openCache(env, plan.sandbox ? 'sandbox' : 'real', terminal.err)
    if ('fault' in cache) return refuse(terminal, [cache.fault])
    closing.push(() => cache.store.close())
    const config = paymentConfig(call, declared, sandbox)
    const owner = `${process.pid}-${randomBytes(9).toString('base64url')}`
    const report = createErrorReporter(terminal, world.now, env.hide)
    const mpp = openMpp(config, baseUrl, report)
    closing.push(() => mpp.close())
    const tills = { x402: openNetworks({ ...config, ledger, owner, report: terminal.err }), mpp }
    const prepare = (catalog: Catalog): Catalog =>
      sandbox === undefined ? catalog : inSandbox(catalog, sandbox)
    const catalog = prepare(declared)
    const problems = [
      ...missingConfig(catalog, config, tills),
      ...invalidConfig(config),
      ...(sandbox === undefined ? playMoneyProblems(config, readTestAddresses(plan.dataDir)) : []),
    ]
    if (problems.length > 0) return refuse(terminal, problems)
    const log = await openLog(env.logLevel, terminal)
    const networks = (): ReturnType<typeof tills.x402.health> => tills.x402.health()
    const metrics =
      env.metrics.port === undefined && env.metrics.token === undefined
        ? undefined
        : await openMetrics({
            ledger,
            now: world.now,
            figures,
            health: networks,
            revision: () => service.revision().catalog.revision,
          })
    const service = createService({
      ...world,
      // Processes on several machines measure leases by one clock.
      now: ledger.now,
      server,
      catalog,
      handlers: { ...handlers, ...unavailableHandlers(stores?.unavailable ?? {}) },
      protocols: (revised) => protocolsOf(revised, tills, baseUrl),
      ledger,
      cache: new Cache(cache.store, world.now),
      // An upstream's host stands in the catalog, which is trusted as code is, and may well be inside: no egress, which
      // is for hosts that callers name. What the upstream says is not trusted: redirects are followed within its host.
      proxy: { fetcher: fetch, secret: env.secret, report },
      figures,
      networks,
      baseUrl,
      mcpUrls: env.mcpUrls,
      sandbox: sandbox !== undefined,
      trustProxy: env.trustProxy,
      owner,
      report,
      observe: (access) => {
        log?.(access)
        metrics?.observe(access)
      },
      settle: metrics?.settle,
      operatorRoute: metrics === undefined ? undefined : metricsRoute(env.metrics, metrics),
    })
    if (metrics !== undefined && env.metrics.port !== undefined)
      closing.push(await openMetricsPort(env.metrics.port, host, metrics))
    closing.push(() => service.idle())
    const load = (): Catalog => prepare(read())
    const problemsOf = (next: Catalog): string[] => [
      ...missingConfig(next, config, tills),
      ...movedPayee(config, paymentConfig(call, next, sandbox)),
    ]
    /** Networks that cannot be settled on are not offered, until they can. */
    const inspect = (): void => {
      const { x402 } = service.revision().catalog.payments
      if (x402 === undefined) return
      for (const look of [tills.x402.survey, tills.x402.inspect])
        void look(x402, terminal.err).then((found) => {
          if (found === 'changed') service.swap(service.revision().catalog)
        })
    }
    const inspecting = setInterval(inspect, INSPECTION_MS)
    closing.push(async () => clearInterval(inspecting))
    const again = (): void => {
      reload(call, { file: plan.file, service, load, problems: problemsOf })
      inspect()
    }
    signals.onReload(again)
    watch.start(again)
    printBanner(call, service, {
      ledger: title,
      cache: cache.title,
      stores: stores?.lines ?? [],
      catalog,
      tills,
      recipient: config.mppRecipient,
      baseUrl,
      dataDir: plan.dataDir,
      sandbox: plan.sandbox,
      port,
      host,
    })
    inspect()
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
  return sandbox.openSandbox({ directory, baseUrl, now: () => new Date(), random: world.random, log })
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
