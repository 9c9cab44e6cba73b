import { dirname, resolve } from 'node:path'
import { networkHealth } from '../engine/app/all-networks.ts'
import type { Instruments, OpenStores } from '../engine/app/host.ts'
import type { OpenRatecard } from '../engine/app/ratecard.ts'
import type { AccessRecord } from '../engine/base/access-record.ts'
import { systemRuntime } from '../engine/base/runtime.ts'
import type { AllFigures } from '../engine/http/status.ts'
import type { Ledger } from '../engine/ledger/ledger.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'
import { SalesFunnel } from '../engine/usage/sales-funnel.ts'
import type { Call } from './command.ts'
import { openMetrics, type Metrics } from './metrics.ts'
import { metricsRoute } from './port.ts'
import type { ServerProcess } from './server-process.ts'
import type { News } from './supervisor-messages.ts'

/** Receives each request that the service has answered, and each change of a payment. */
export interface Observer {
  readonly observe: (access: AccessRecord) => void
  readonly settle: (previous: PaymentRecord, next: PaymentRecord) => void
}

/** Interval at which a process stores what it has counted of sales, which limits the loss when it is killed. */
const WRITTEN_MS = 2_000

/** What a process counts and shows of its service: sales, metrics, and what the console displays (`viewer`). */
export function instrumentsFor(
  { call, plan, log, host }: ServerProcess,
  { counts, now }: Ledger,
  {
    ownPayers,
    viewer,
    metrics,
  }: {
    readonly ownPayers: () => ReadonlySet<string>
    readonly viewer: Observer | undefined
    readonly metrics: Metrics | undefined
  },
): Instruments {
  const funnel = new SalesFunnel({ counts, now, own: ownPayers })
  const writing = setInterval(() => void funnel.write().catch(log.error), WRITTEN_MS).unref()
  const observers: readonly Observer[] = [funnel, viewer, metrics].filter((each) => each !== undefined)
  return {
    figures: figuresOf(call),
    sandbox: plan.sandbox,
    bound: () => host,
    settle: (previous, next) => {
      for (const each of observers) each.settle(previous, next)
    },
    observe: (access) => {
      for (const each of observers) each.observe(access)
    },
    close: () => {
      clearInterval(writing)
      return funnel.write()
    },
    caller: metrics?.countCalls(systemRuntime.caller),
    noteFacilitator: metrics?.noteFacilitator,
    operatorRoute: metrics === undefined ? undefined : metricsRoute(call.env, metrics),
  }
}

/** Undefined when nobody may read them. `app` is there before they are read. */
export async function metricsFor(
  { call, plan, supervisor }: ServerProcess,
  { ledger, ledgerFile, payments }: OpenStores,
  app: () => OpenRatecard,
): Promise<Metrics | undefined> {
  const { metricsPort, metricsToken } = call.env
  if (metricsPort === undefined && metricsToken === undefined) return undefined
  const catalogNow = () => app().service.revision().catalog
  return openMetrics({
    ledger,
    ledgerFile,
    rpcUrls: payments.rpcUrls,
    now: systemRuntime.now,
    figures: figuresOf(call),
    others: supervisor,
    health: () => networkHealth(app().networks),
    revision: () => catalogNow().revision,
    isRefused: () => app().service.refused() !== undefined,
    denyLists: () =>
      catalogNow().payments.denyLists.map((name) => ({ name, path: resolve(dirname(plan.file), name) })),
  })
}

/** Tells the first process what its console shows of this one; undefined without a console. */
export function newsFor({ plan, supervisor }: ServerProcess): Observer | undefined {
  if (plan.consolePort === undefined || supervisor === undefined) return undefined
  const tell = (news: News): void => supervisor.report({ kind: 'news', news })
  return {
    observe: (access) => tell({ kind: 'access', access }),
    settle: (previous, next) => tell({ kind: 'change', previous, next }),
  }
}

/** Shows in the console of this process what another one has told. */
export function show(news: News, console: Observer): void {
  if (news.kind === 'access') console.observe(news.access)
  else console.settle(news.previous, news.next)
}

function figuresOf({ service }: Call): AllFigures {
  return service.sources ?? (() => new Map())
}
