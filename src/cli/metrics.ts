import type { Aggregator, Counter, Registry } from 'prom-client'
import type { AccessRecord } from '../engine/base/access-record.ts'
import type { Reload } from '../engine/app/catalog-reload.ts'
import type { RpcTransport } from '../engine/base/runtime.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'
import type { OnFacilitatorOutcome } from '../engine/x402/facilitators/observed-facilitator.ts'
import { COUNTED, READINGS, type Labels, type Reading } from './metric-table.ts'
import { Readings, type MetricSources } from './metric-readings.ts'
import { Revenue } from './revenue.ts'
import type { Supervisor } from './supervised-process.ts'

export interface MetricsSettings extends MetricSources {
  /** Endpoints of the nodes by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** The processes that serve together with this one; undefined: it serves alone. */
  readonly others: Pick<Supervisor, 'counts' | 'onCount'> | undefined
}

/** What is counted in this process and those beside it, in the text format of Prometheus; sum over servers when several are scraped. */
export interface Metrics {
  readonly observe: (access: AccessRecord) => void
  /** Called when this process has changed a payment. */
  readonly settle: (previous: PaymentRecord, next: PaymentRecord) => void
  /** Counts calls of nodes, and failed or unreadable answers. */
  readonly countCalls: (call: RpcTransport) => RpcTransport
  readonly noteFacilitator: OnFacilitatorOutcome
  readonly noteReload: (reload: Reload) => void
  readonly read: () => Promise<{ readonly type: string; readonly text: string }>
}

/** The time from a request to its answer, in seconds. */
const DURATIONS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

export async function openMetrics(settings: MetricsSettings): Promise<Metrics> {
  const prom = await import('prom-client')
  const registry = new prom.Registry()
  const registers = [registry]
  prom.collectDefaultMetrics({ register: registry })
  const [revenue, authorized] = [new Revenue(), new Revenue()]
  const readings = new Readings(settings, { revenue, authorized })
  for (const reading of READINGS) {
    const { name, kind, help, labels, together = kind === 'counter' ? 'sum' : 'max' } = reading
    const aggregator: Aggregator = together
    const collect = collectFrom(reading, readings)
    const made = { name, help, labelNames: [...labels], registers, collect, aggregator }
    void (kind === 'counter' ? new prom.Counter(made) : new prom.Gauge(made))
  }
  const count = counters(prom.Counter, registry)
  const durations = new prom.Histogram({
    name: 'ratecard_request_duration_seconds',
    help: 'Time from the request to its answer',
    labelNames: ['route'],
    buckets: DURATIONS,
    registers,
  })
  const networkOf = new Map(Object.entries(settings.rpcUrls).map(([chain, url]) => [url, `eip155:${chain}`]))
  const { others } = settings
  others?.onCount(() => registry.getMetricsAsJSON())
  return {
    observe: ({ place: route, status, outcome, cause, ms, cached }) => {
      count('ratecard_requests_total', { route, status: String(status), outcome })
      durations.observe({ route }, ms / 1000)
      if (cached !== undefined)
        count('ratecard_cache_answers_total', { route, result: cached ? 'hit' : 'miss' })
      if (cause !== undefined) count('ratecard_upstream_failures_total', { route, cause })
    },
    settle: (previous, next) => {
      const { operation, network, receipt, state } = next
      // A payment that was settled again after a reorganization was counted before.
      if (previous.receipt === undefined && receipt !== undefined && previous.undone === undefined) {
        count('ratecard_payments_total', { operation, network, outcome: 'settled' })
        revenue.add(next, receipt)
        authorized.add(next, { amount: next.authorizedAmount })
        if (next.usage !== undefined) count('ratecard_metered_payments_total', { operation, network })
        for (const { part, count: used } of next.usage ?? [])
          if (used !== undefined) count('ratecard_metered_usage_total', { operation, part }, used)
      }
      if (previous.state !== state && (state === 'unknown' || state === 'voided'))
        count('ratecard_payments_total', { operation, network, outcome: state })
    },
    countCalls: (call) => async (url, request) => {
      const network = networkOf.get(url)
      if (network === undefined) return call(url, request)
      const fail = (fault: unknown): never => {
        count('ratecard_rpc_failures_total', { network })
        throw fault
      }
      count('ratecard_rpc_requests_total', { network }, callsIn(request.body))
      const response = await call(url, request).catch(fail)
      return { json: () => response.json().catch(fail) }
    },
    noteFacilitator: (outcome) => count('ratecard_facilitator_requests_total', { ...outcome }),
    noteReload: ({ kind }) =>
      count('ratecard_catalog_reloads_total', { result: kind === 'reloaded' ? 'served' : 'refused' }),
    read: async () => {
      const all = others && prom.AggregatorRegistry.aggregate(Array.from(await others.counts()))
      return { type: registry.contentType, text: await (all ?? registry).metrics() }
    },
  }
}

type Count = (name: keyof typeof COUNTED, labels: Labels, value?: number) => void

function counters(Made: typeof Counter, registry: Registry): Count {
  const made = new Map(
    Object.entries(COUNTED).map(([name, { help, labels }]) => [
      name,
      new Made({ name, help, labelNames: [...labels], registers: [registry] }),
    ]),
  )
  return (name, labels, value = 1) => made.get(name)?.inc(labels, value)
}

interface Collected {
  reset(): void
  inc(labels: Labels, value: number): void
}

/** The values of a metric that are worked out when it is read. */
function collectFrom({ rows }: Reading, readings: Readings): (this: Collected) => Promise<void> {
  return async function () {
    this.reset()
    for (const [labels, value] of await rows(readings)) this.inc(labels, value)
  }
}

/** Calls of one JSON-RPC request: nodes are paid by the call, however many share a request. */
function callsIn(body: string): number {
  const request: unknown = body.startsWith('[') ? JSON.parse(body) : undefined
  return Array.isArray(request) ? request.length : 1
}
