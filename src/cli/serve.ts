import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import {
  AnswerCache,
  CatalogError,
  createHttpServer,
  createMemoryCache,
  createService,
  formatIssue,
  listen,
  loadCatalog,
  openLmdbLedger,
  type Catalog,
  type Service,
} from '../engine/index.ts'
import { announce } from './announce.ts'
import { openTills, protocolsOf, world, type PaymentMeans } from './assemble.ts'
import type { Call, Command, Sandbox, Terminal } from './command.ts'
import { missingMeans, playMoneyProblems, sandboxProblems } from './guard.ts'
import { importHandlers } from './handlers.ts'
import { untilStopped } from './signals.ts'

export const serve: Command = {
  name: 'serve',
  summary: 'serve a catalog; --sandbox: on a local chain with play money',
  usage: 'serve [--catalog F] [--handlers DIR] [--port N] [--sandbox] [--offline] [--data-dir D]',
  examples: [
    'ratecard serve --sandbox --offline',
    'PAY_TO=0x… SETTLER_PRIVATE_KEY=… RPC_URL_8453=https://… ratecard serve',
  ],
  options: {
    catalog: { type: 'string' },
    handlers: { type: 'string' },
    port: { type: 'string' },
    sandbox: { type: 'boolean' },
    offline: { type: 'boolean' },
    'data-dir': { type: 'string' },
  },
  run: async (call) => {
    const plan = planOf(call)
    if (plan === undefined) return 64
    const problems = plan.sandbox ? sandboxProblems(call.env) : []
    if (problems.length > 0) return refuse(call.terminal, problems)
    try {
      return await run(call, plan)
    } catch (fault) {
      if (!(fault instanceof CatalogError)) throw fault
      call.terminal.err(`${fault.message}\n\n${plan.file}: not served`)
      return 1
    }
  },
}

interface Plan {
  readonly file: string
  readonly port: number
  readonly sandbox: boolean
  readonly offline: boolean
  readonly dataDir: string
  readonly handlers: string | undefined
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
    handlers: flags.text('handlers'),
  }
}

async function run(call: Call, plan: Plan): Promise<number> {
  const { terminal, shop, env } = call
  const standIns = plan.offline ? await shop.startStandIns() : undefined
  const closing: (() => Promise<unknown>)[] = standIns === undefined ? [] : [() => standIns.stop()]
  try {
    const handlers =
      plan.handlers === undefined ? shop.handlers(standIns?.url) : await importHandlers(plan.handlers)
    const known = { ...call.known, handlers: Object.keys(handlers) }
    const load = (): Catalog => {
      const { catalog, warnings, text } = loadCatalog(plan.file, known)
      for (const issue of warnings) terminal.err(formatIssue(issue, plan.file, text))
      return catalog
    }
    const first = load()
    const server = createHttpServer()
    const host = plan.sandbox ? '127.0.0.1' : env.host
    const port = await listen(server, plan.port, host)
    closing.unshift(() => new Promise((resolve) => server.close(resolve)))
    const baseUrl = env.baseUrl ?? `http://localhost:${port}`
    const sandbox = plan.sandbox ? await shop.openSandbox(plan.dataDir, baseUrl, terminal.err) : undefined
    if (sandbox !== undefined) closing.push(() => sandbox.stop())
    const ledger = await openLmdbLedger(sandbox?.ledgerDirectory ?? join(plan.dataDir, 'ledger'))
    closing.splice(1, 0, () => ledger.close())
    const means = meansOf(call, first, sandbox)
    const tills = openTills({ ...means, ledger, owner: `${process.pid}-${randomUUID()}` })
    const prepare = (catalog: Catalog): Catalog =>
      sandbox === undefined ? catalog : inSandbox(catalog, sandbox)
    const problems = [
      ...missingMeans(prepare(first), means, tills),
      ...(sandbox === undefined ? playMoneyProblems(means, await shop.playAddresses(plan.dataDir)) : []),
    ]
    if (problems.length > 0) return refuse(call.terminal, problems)
    const service = createService({
      ...world,
      server,
      catalog: prepare(first),
      handlers,
      protocols: (catalog) => protocolsOf(catalog, tills, baseUrl),
      ledger,
      cache: new AnswerCache(createMemoryCache(), world.now),
      proxy: { fetcher: fetch, secret: env.secret },
      baseUrl,
      sandbox: sandbox !== undefined,
      trustProxy: env.trustProxy,
      owner: `${process.pid}`,
      report: (fault) =>
        terminal.err(
          `unexpected: ${fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)}`,
        ),
    })
    announce(call, service, { ledger: ledger.name, catalog: prepare(first), tills, baseUrl, port, host })
    await untilStopped(() => reload(call, plan, service, () => prepare(load())))
    terminal.err('stopping: requests in flight are finished first')
    return 0
  } finally {
    for (const close of closing) await close()
  }
}

/** Builds the new revision beside the old one; a file with mistakes changes nothing. */
function reload({ terminal }: Call, { file }: Plan, service: Service, load: () => Catalog): void {
  const before = service.revision().catalog.revision
  try {
    const { catalog } = service.swap(load())
    terminal.err(`${file}: revision ${before} → ${catalog.revision} (new handler code needs a restart)`)
  } catch (fault) {
    if (!(fault instanceof CatalogError)) throw fault
    terminal.err(`${fault.message}\n\n${file}: kept revision ${before}`)
  }
}

type Means = Pick<PaymentMeans, 'payTo' | 'rpcUrls' | 'signerKeys'>

function meansOf({ env }: Call, catalog: Catalog, sandbox: Sandbox | undefined): Means {
  if (sandbox !== undefined) {
    const { payTo, chainId, rpcUrl, settlerKey } = sandbox.evm
    return { payTo, rpcUrls: { [chainId]: rpcUrl }, signerKeys: [settlerKey] }
  }
  return {
    payTo: env.payTo ?? catalog.payments.payTo ?? '',
    rpcUrls: env.rpcUrls,
    signerKeys: env.settlerKeys,
  }
}

/** The sandbox takes the place of the catalog's payments: play money only, on its own chain. */
function inSandbox(catalog: Catalog, { evm }: Sandbox): Catalog {
  const networks = [`eip155:${evm.chainId}`]
  const x402 = { timeout: catalog.payments.x402?.timeout ?? 60_000, networks }
  return { ...catalog, payments: { ...catalog.payments, payTo: evm.payTo, x402, mpp: undefined } }
}

function refuse({ err }: Terminal, problems: readonly string[]): number {
  for (const problem of problems) err(`ratecard serve: ${problem}`)
  return 1
}
