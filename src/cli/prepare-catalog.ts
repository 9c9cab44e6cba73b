import type { Prepared } from '../engine/app/host.ts'
import { OptionError } from '../engine/app/options.ts'
import type { StoresOfService } from '../engine/app/service-stores.ts'
import type { Catalog } from '../engine/catalog/catalog.ts'
import type { HandlerMap } from '../engine/handler.ts'
import type { StandIns } from '../engine/service-definition.ts'
import { readTestAddresses } from '../sandbox/known-keys.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import {
  baseUrlOf,
  inSandbox,
  namesSolana,
  paymentConfig,
  playMoneyProblems,
  sandboxPayments,
  withStandIns,
} from './payment-config.ts'
import { openPort } from './port.ts'
import { openTerms, resaleTerms } from './resale-terms.ts'
import type { ServerProcess } from './server-process.ts'
import { startChains } from './start-chains.ts'

/** Where a catalog is served. */
export interface Place {
  readonly port: number
  readonly sandbox: Sandbox | undefined
  readonly prepared: Prepared
}

/** What answers the calls of a process. */
export interface LoadedService {
  readonly handlers: HandlerMap
  readonly stores: StoresOfService
  /** Undefined: the real sources. */
  readonly standIns: StandIns | undefined
}

/** Opens what a catalog needs: the port, the chains of the sandbox and the stores of the service. */
export async function prepareCatalog(
  { call, plan, log, server, host, supervisor, opened }: ServerProcess,
  catalog: Catalog,
  { handlers, stores, standIns }: LoadedService,
): Promise<Place> {
  const { env, service: definition, context } = call
  const before = supervisor?.before
  if (plan.productionStrict) refuseProblems(openTermsOf(catalog))
  const port = before?.port ?? (await openPort(server, plan.port, host))
  const baseUrl = baseUrlOf({ ...env, port })
  if (supervisor === undefined) opened.defer(await startChains(plan, log))
  const sandbox = plan.sandbox
    ? (await import('../sandbox/sandbox.ts')).readSandbox({ directory: plan.dataDir, baseUrl })
    : undefined
  if (sandbox === undefined)
    refuseProblems(playMoneyProblems(paymentConfig(env, catalog), readTestAddresses(plan.dataDir)))
  else if (sandbox.svm === undefined && namesSolana(catalog))
    log.write({ level: 'warn', event: 'start', message: NO_SOLANA })
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

/** Throws `OptionError` for one or more. */
function refuseProblems(problems: readonly string[]): void {
  if (problems.length > 0) throw new OptionError(problems)
}

/** The sources whose terms do not allow resale, or leave it open. */
function openTermsOf(catalog: Catalog): string[] {
  return resaleTerms(catalog).flatMap((source) => {
    const open = openTerms(source)
    return open === undefined ? [] : [`source ${source.name}: ${open}`]
  })
}

const NO_SOLANA = 'the sandbox has no Solana: npm install --save-dev litesvm @solana/kit'

/** Payments of play money and answers of stand-ins are never kept in the stores of the real service. */
const IN_MEMORY = { ledger: undefined, cache: undefined } as const
