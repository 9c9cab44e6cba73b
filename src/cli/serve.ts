import cluster from 'node:cluster'
import { availableParallelism } from 'node:os'
import { OptionError } from '../engine/app/options.ts'
import { LedgerError } from '../engine/base/errors.ts'
import { systemRuntime } from '../engine/base/runtime.ts'
import { CatalogError } from '../engine/catalog/issue.ts'
import type { Call } from './command.ts'
import { openLog } from './log.ts'
import { sandboxProblems } from './payment-config.ts'
import { runServer } from './run-server.ts'
import type { Plan } from './server-process.ts'
import { startChains } from './start-chains.ts'
import { supervise } from './supervisor.ts'

export async function serve(call: Call): Promise<number> {
  const plan = planOf(call)
  if (plan === undefined) return 64
  const writer = cluster.isWorker ? 'shared' : 'alone'
  const log = await openLog({ ...call.env, terminal: call.terminal, writer, now: systemRuntime.now })
  try {
    const problems = contradictions(call, plan)
    if (problems.length > 0) throw new OptionError(problems)
    const { workers, watch, drainMs } = plan
    if (cluster.isWorker || (workers === 1 && !watch)) return await runServer(call, plan, log)
    return await supervise(log, { workers, watch, drainMs }, () => startChains(plan, log))
  } catch (fault) {
    const lines = refusal(fault, plan)
    if (lines === undefined) throw fault
    for (const message of lines) log.write({ level: 'error', event: 'start', message })
    return 1
  } finally {
    await log.close()
  }
}

function planOf({ flags, env, terminal }: Call): Plan | undefined {
  const port = flags.text('port')
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= 65535)) {
    terminal.err('ratecard serve: --port takes a number from 0 to 65535')
    return undefined
  }
  const consolePort = consolePortOf(flags.text('console'), flags.given('sandbox'))
  if (consolePort === 'wrong') {
    terminal.err('ratecard serve: --console takes a port from 0 to 65535, as in --console=4022')
    return undefined
  }
  const workers = workersOf(flags.text('workers') ?? '1')
  if (workers === undefined) {
    terminal.err(`ratecard serve: --workers takes a number from 1 to ${MOST_WORKERS}, or auto`)
    return undefined
  }
  // Nobody sends requests to a sandbox through a proxy.
  const isForDevelopment = flags.given('sandbox') || flags.given('watch')
  return {
    file: flags.text('catalog') ?? env.catalog,
    port: port === undefined ? env.port : Number(port),
    sandbox: flags.given('sandbox'),
    offline: flags.given('offline'),
    watch: flags.given('watch'),
    workers,
    drainMs: isForDevelopment ? 0 : env.drainSeconds * 1_000,
    consolePort,
    productionStrict: flags.given('production-strict'),
    dataDir: flags.text('data-dir') ?? env.dataDir,
  }
}

/** More than any machine has cores for. */
const MOST_WORKERS = 256

function workersOf(text: string): number | undefined {
  if (text === 'auto') return availableParallelism()
  const workers = /^\d{1,3}$/.test(text) ? Number(text) : 0
  return workers >= 1 && workers <= MOST_WORKERS ? workers : undefined
}

/** 0: any port; undefined: there is no console. */
function consolePortOf(text: string | undefined, isSandbox: boolean): number | undefined | 'wrong' {
  if (text === undefined) return isSandbox ? 0 : undefined
  if (text === '') return 0
  return /^\d{1,5}$/.test(text) && Number(text) <= 65535 ? Number(text) : 'wrong'
}

/** Options that do not go together. */
function contradictions({ env, service }: Call, { sandbox, offline }: Plan): string[] {
  return [
    ...(sandbox ? sandboxProblems(env) : []),
    // Stand-ins invent their answers: nobody may be charged real money for them.
    ...(offline && !sandbox ? ['--offline answers with invented data and goes with --sandbox only'] : []),
    ...(offline && service.standIns === undefined
      ? ['--offline: this service has no local replacements for outside sources']
      : []),
  ]
}

/** Why the server does not start, for the operator; undefined for bugs. */
function refusal(fault: unknown, { file, sandbox }: Plan): string[] | undefined {
  if (fault instanceof CatalogError) return [`${fault.message}\n\n${file}: not served`]
  const label = (problems: readonly string[]): string[] => problems.map((each) => `ratecard serve: ${each}`)
  if (fault instanceof LedgerError) return label([fault.message])
  if (!(fault instanceof OptionError)) return undefined
  return label([...fault.problems, ...(sandbox ? [] : [TRY_SANDBOX])])
}

const TRY_SANDBOX = 'to try it without any of this: npx ratecard serve --sandbox'
