import { stat } from 'node:fs/promises'
import type { Counter } from 'prom-client'
import type { AccessRecord } from '../engine/base/access-record.ts'
import { LedgerLostError } from '../engine/base/errors.ts'
import type { AllFigures } from '../engine/http/status.ts'
import { findRefundsDue } from '../engine/ledger/clean-up.ts'
import type { Ledger } from '../engine/ledger/ledger.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'
import { findAsset } from '../engine/base/networks.ts'
import type { X402Networks } from '../engine/x402/exact-evm/exact-networks.ts'
import type { RpcTransport } from '../engine/base/runtime.ts'

export interface MetricsSettings {
  readonly ledger: Ledger
  readonly now: () => number
  /** How the outside sources have done. */
  readonly figures: AllFigures
  /** State of settlement on the networks with payments. */
  readonly health: () => ReturnType<X402Networks['health']>
  readonly revision: () => string
  /** Endpoints of the nodes by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** The file of a ledger on this machine. */
  readonly ledgerFile: string | undefined
}

/** What is counted in this process, in the text format of Prometheus; sum over processes when several are scraped. */
export interface Metrics {
  readonly observe: (access: AccessRecord) => void
  /** A payment has changed, by the doing of this process. */
  readonly settle: (previous: PaymentRecord, next: PaymentRecord) => void
  /** Counts calls of nodes, and failed or unreadable answers. */
  readonly countCalls: (call: RpcTransport) => RpcTransport
  readonly read: () => Promise<{ readonly type: string; readonly text: string }>
}

interface Revenue {
  readonly labels: { readonly operation: string; readonly network: string; readonly token: string }
  readonly units: bigint
  readonly decimals: number
}

type Labels = Readonly<Record<string, string>>
type Row = readonly [labels: Labels, value: number]
type Rows = () => readonly Row[] | Promise<readonly Row[]>

/** Payments in doubt, and refunds that are due, are looked for at most so often, and so many of them are counted. */
const LOOK_MS = 10_000
const MOST_COUNTED = 1_000
const WEI = 1e18
/** Payments that recovery checks within this time count as uncertain. */
const SOON_MS = 330_000

/** Every label is a name of the catalog, of a network or of an error: none can be made up by a caller. */
export async function openMetrics({
  ledger,
  now,
  figures,
  health,
  revision,
  rpcUrls,
  ledgerFile,
}: MetricsSettings): Promise<Metrics> {
  const prom = await import('prom-client')
  const registry = new prom.Registry()
  const registers = [registry]
  prom.collectDefaultMetrics({ register: registry })
  const counter = (name: string, help: string, labelNames: string[]): Counter =>
    new prom.Counter({ name, help, labelNames, registers })
  const requests = counter(
    'ratecard_requests_total',
    'Requests by route template and outcome: ok, or the code of the problem',
    ['route', 'status', 'outcome'],
  )
  const durations = new prom.Histogram({
    name: 'ratecard_request_duration_seconds',
    help: 'Time from the request to its answer',
    labelNames: ['route'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  })
  const cached = counter(
    'ratecard_cache_answers_total',
    'Answers that came from the cache (hit) or were made for the request (miss)',
    ['route', 'result'],
  )
  const payments = counter(
    'ratecard_payments_total',
    'Payments that became settled, unknown or voided, as the ledger has it',
    ['operation', 'network', 'outcome'],
  )
  const total = (name: string, help: string, labelNames: string[], rows: Rows): void =>
    void new prom.Counter({ name, help, labelNames, registers, collect: collectFrom(rows) })
  const gauge = (name: string, help: string, labelNames: string[], rows: Rows): void =>
    void new prom.Gauge({ name, help, labelNames, registers, collect: collectFrom(rows) })
  /** In the smallest units, since sums of fractions lose precision. */
  const revenue = new Map<string, Revenue>()
  total(
    'ratecard_revenue_total',
    'Settled amounts in units of the token, as the ledger has it',
    ['operation', 'network', 'token'],
    () =>
      Array.from(revenue.values(), ({ labels, units, decimals }) => [labels, Number(units) / 10 ** decimals]),
  )
  const unknown = recent(now, () => countUnknown(ledger, now()))
  gauge(
    'ratecard_payments_unknown',
    'Payments of which nobody knows yet whether they have settled, over all processes of the ledger',
    [],
    // An unavailable store shows in the requests; the other metrics are still exported.
    async () => [[{}, await unknown().catch(() => Number.NaN)]],
  )
  gauge(
    'ratecard_ledger_closed',
    '1 while the ledger takes no payment: it was emptied or replaced (lost), or cannot be reached or trusted (unavailable)',
    ['reason'],
    async () => {
      const fault: unknown = await ledger.check().catch((caught: unknown) => caught)
      const isLost = fault instanceof LedgerLostError
      return [
        [{ reason: 'lost' }, isLost ? 1 : 0],
        [{ reason: 'unavailable' }, fault !== undefined && !isLost ? 1 : 0],
      ]
    },
  )
  const refundsDue = recent(now, () => findRefundsDue(ledger, MOST_COUNTED))
  for (const [name, help, unitsOf] of [
    ['ratecard_refunds_due', 'Payments whose money is owed back, over all processes of the ledger', () => 1],
    [
      'ratecard_refunds_due_amount',
      'What is owed back, in units of the token',
      (entry: PaymentRecord, decimals: number) => Number(entry.receipt?.amount ?? 0) / 10 ** decimals,
    ],
  ] as const)
    gauge(name, help, ['network', 'token'], async () =>
      (await refundsDue().catch(() => [])).map((entry) => {
        const { network, asset } = entry
        const { symbol: token, decimals } = findAsset(network, asset) ?? { symbol: 'unknown', decimals: 0 }
        return [{ network, token }, unitsOf(entry, decimals)]
      }),
    )
  /** An unavailable store omits these; the other metrics are still exported. */
  const networks = (): ReturnType<X402Networks['health']> => health().catch(() => [])
  gauge(
    'ratecard_signer_balance',
    'What a signer has for gas, in units of the coin, as of the last look less what was promised since',
    ['network', 'signer', 'coin'],
    async () =>
      (await networks()).flatMap(({ network: { id, coin }, balances }) =>
        Array.from(balances, ([signer, wei]): Row => [{ network: id, signer, coin }, Number(wei) / WEI]),
      ),
  )
  gauge(
    'ratecard_gas_lost_last_hour',
    'What reverted transactions have cost in the last hour over all processes of the ledger, in units of the coin',
    ['network', 'coin'],
    async () =>
      (await networks()).map(({ network: { id, coin }, gasLost }) => [
        { network: id, coin },
        Number(gasLost) / WEI,
      ]),
  )
  gauge(
    'ratecard_gas_spent',
    'What the mined transactions of this process have cost since its start, in units of the coin',
    ['network', 'coin'],
    async () =>
      (await networks()).map(({ network: { id, coin }, totals: { gasSpent } }) => [
        { network: id, coin },
        Number(gasSpent) / WEI,
      ]),
  )
  gauge(
    'ratecard_settlement_transactions',
    'Transactions of this process that were mined since its start; one may settle several payments',
    ['network'],
    async () =>
      (await networks()).map(({ network: { id }, totals: { transactions } }) => [
        { network: id },
        transactions,
      ]),
  )
  gauge(
    'ratecard_signer_oldest_unmined_seconds',
    'How long the lowest transaction of a signer that is in no block yet has waited',
    ['network'],
    async () =>
      (await networks()).map(({ network: { id }, unmined }) => [{ network: id }, unmined.age / 1000]),
  )
  gauge(
    'ratecard_network_closed',
    '1 while nothing is sent on a network: too much gas was lost, or it does not include our transactions',
    ['network'],
    async () =>
      (await networks()).map(({ network: { id }, trouble }) => [
        { network: id },
        trouble === undefined ? 0 : 1,
      ]),
  )
  for (const [name, help, of] of [
    ['ratecard_source_requests_total', 'Questions to outside sources', 'asked'],
    ['ratecard_source_failures_total', 'Questions to outside sources without a usable answer', 'failed'],
    ['ratecard_source_drifts_total', 'Answers of outside sources in another form than before', 'drifted'],
  ] as const)
    total(name, help, ['source'], () => Array.from(figures(), ([source, each]) => [{ source }, each[of]]))
  total(
    'ratecard_source_skipped_total',
    'Rows and fields of outside sources that were not as expected, by field',
    ['source', 'field'],
    () =>
      Array.from(figures()).flatMap(([source, { fields }]) =>
        Array.from(fields, ([field, count]): Row => [{ source, field }, count]),
      ),
  )
  const calls = counter('ratecard_rpc_requests_total', 'Requests to the node of a network', ['network'])
  const failedCalls = counter(
    'ratecard_rpc_failures_total',
    'Requests to the node of a network that failed, or whose answer cannot be read',
    ['network'],
  )
  const networkOf = new Map(Object.entries(rpcUrls).map(([chain, url]) => [url, `eip155:${chain}`]))
  if (ledgerFile !== undefined)
    gauge(
      'ratecard_ledger_bytes',
      'Size of the file of the ledger, without the answers that are kept for redelivery',
      [],
      async () => [[{}, (await stat(ledgerFile).catch(() => ({ size: Number.NaN }))).size]],
    )
  gauge('ratecard_catalog', 'The revision that is served', ['revision'], () => [
    [{ revision: revision() }, 1],
  ])
  return {
    observe: ({ place: route, status, outcome, ms, cached: fromCache }) => {
      requests.inc({ route, status, outcome })
      durations.observe({ route }, ms / 1000)
      if (fromCache !== undefined) cached.inc({ route, result: fromCache ? 'hit' : 'miss' })
    },
    settle: (previous, next) => {
      const { operation, network, asset, receipt, state } = next
      // What a reorganisation has undone, and was settled again, was counted before.
      if (previous.receipt === undefined && receipt !== undefined && previous.undone === undefined) {
        payments.inc({ operation, network, outcome: 'settled' })
        const token = findAsset(network, asset)
        if (token !== undefined) {
          const { symbol, decimals } = token
          const key = `${operation} ${network} ${symbol}`
          const units = (revenue.get(key)?.units ?? 0n) + BigInt(receipt.amount)
          revenue.set(key, { labels: { operation, network, token: symbol }, units, decimals })
        }
      }
      if (previous.state !== state && (state === 'unknown' || state === 'voided'))
        payments.inc({ operation, network, outcome: state })
    },
    countCalls: (call) => async (url, request) => {
      const network = networkOf.get(url)
      if (network === undefined) return call(url, request)
      const count = (fault: unknown): never => {
        failedCalls.inc({ network })
        throw fault
      }
      calls.inc({ network }, countOf(request.body))
      const response = await call(url, request).catch(count)
      return { json: () => response.json().catch(count) }
    },
    read: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  }
}

/** Calls of one JSON-RPC request: nodes are paid by the call, however many share a request. */
function countOf(body: string): number {
  const request: unknown = body.startsWith('[') ? JSON.parse(body) : undefined
  return Array.isArray(request) ? request.length : 1
}

interface Collected {
  reset(): void
  inc(labels: Labels, value: number): void
}

/** The values of a metric that are worked out when it is read. */
function collectFrom(rows: Rows): (this: Collected) => Promise<void> {
  return async function () {
    this.reset()
    for (const [labels, value] of await rows()) this.inc(labels, value)
  }
}

/** What was found within the last seconds, or is looked for again. */
function recent<T>(now: () => number, find: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly found: Promise<T> } | undefined
  return () => {
    if (last === undefined || now() - last.at >= LOOK_MS) last = { at: now(), found: find() }
    return last.found
  }
}

async function countUnknown(ledger: Ledger, now: number): Promise<number> {
  const due = await ledger.due('money', now + SOON_MS, MOST_COUNTED)
  return due.filter(({ state }) => state === 'unknown').length
}
