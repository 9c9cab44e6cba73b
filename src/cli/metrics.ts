import {
  findAsset,
  type Access,
  type AllFigures,
  type PaymentRecord,
  type Ledger,
  type X402Networks,
} from '../engine/internal.ts'

export interface MetricsSettings {
  readonly ledger: Ledger
  readonly now: () => number
  /** How the outside sources have done. */
  readonly figures: AllFigures
  /** How settling goes on the networks that were paid on. */
  readonly health: () => ReturnType<X402Networks['health']>
  readonly revision: () => string
}

/** What is counted in this process, in the text format of Prometheus; sum over processes when several are scraped. */
export interface Metrics {
  readonly observe: (access: Access) => void
  /** A payment has changed, by the doing of this process. */
  readonly settle: (previous: PaymentRecord, next: PaymentRecord) => void
  readonly read: () => Promise<{ readonly type: string; readonly text: string }>
}

interface Revenue {
  readonly labels: { readonly operation: string; readonly network: string; readonly token: string }
  readonly units: bigint
  readonly decimals: number
}

/** Payments in doubt are looked for at most so often, and so many of them are counted. */
const LOOK_MS = 10_000
const MOST_UNKNOWN = 1_000
const WEI = 1e18
/** In doubt is what recovery looks after again within this time. */
const SOON_MS = 330_000

/** Every label is a name of the catalog, of a network or of an error: none can be made up by a caller. */
export async function openMetrics({
  ledger,
  now,
  figures,
  health,
  revision,
}: MetricsSettings): Promise<Metrics> {
  const { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } = await import('prom-client')
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'ratecard_requests_total',
    help: 'Requests by route template and outcome: ok, or the code of the problem',
    labelNames: ['route', 'status', 'outcome'],
    registers,
  })
  const durations = new Histogram({
    name: 'ratecard_request_duration_seconds',
    help: 'Time from the request to its answer',
    labelNames: ['route'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  })
  const cached = new Counter({
    name: 'ratecard_cache_answers_total',
    help: 'Answers that came from the cache (hit) or were made for the request (miss)',
    labelNames: ['route', 'result'],
    registers,
  })
  const payments = new Counter({
    name: 'ratecard_payments_total',
    help: 'Payments that became settled, unknown or voided, as the ledger has it',
    labelNames: ['operation', 'network', 'outcome'],
    registers,
  })
  /** In the smallest units: sums of fractions drift. */
  const revenue = new Map<string, Revenue>()
  new Counter({
    name: 'ratecard_revenue_total',
    help: 'Settled amounts in units of the token, as the ledger has it',
    labelNames: ['operation', 'network', 'token'],
    registers,
    collect() {
      this.reset()
      for (const { labels, units, decimals } of revenue.values())
        this.inc(labels, Number(units) / 10 ** decimals)
    },
  })
  let looked: { readonly at: number; readonly count: Promise<number> } | undefined
  new Gauge({
    name: 'ratecard_payments_unknown',
    help: 'Payments of which nobody knows yet whether they have settled, over all processes of the ledger',
    registers,
    async collect() {
      if (looked === undefined || now() - looked.at >= LOOK_MS)
        looked = { at: now(), count: countUnknown(ledger, now()) }
      // A store that is away shows in the requests; the rest is to be read all the same.
      this.set(await looked.count.catch(() => Number.NaN))
    },
  })
  /** A store that is away leaves these out; the rest is to be read all the same. */
  const networks = (): ReturnType<X402Networks['health']> => health().catch(() => [])
  new Gauge({
    name: 'ratecard_signer_balance',
    help: 'What a signer has for gas, in units of the coin, as of the last look less what was promised since',
    labelNames: ['network', 'signer', 'coin'],
    registers,
    async collect() {
      this.reset()
      for (const { network, balances } of await networks())
        for (const [signer, wei] of balances)
          this.set({ network: network.id, signer, coin: network.coin }, Number(wei) / WEI)
    },
  })
  new Gauge({
    name: 'ratecard_gas_lost_last_hour',
    help: 'What reverted transactions have cost in the last hour over all processes of the ledger, in units of the coin',
    labelNames: ['network', 'coin'],
    registers,
    async collect() {
      this.reset()
      for (const { network, gasLost } of await networks())
        this.set({ network: network.id, coin: network.coin }, Number(gasLost) / WEI)
    },
  })
  new Gauge({
    name: 'ratecard_signer_oldest_unmined_seconds',
    help: 'How long the lowest transaction of a signer that is in no block yet has waited',
    labelNames: ['network'],
    registers,
    async collect() {
      this.reset()
      for (const { network, unmined } of await networks())
        this.set({ network: network.id }, unmined.age / 1000)
    },
  })
  new Gauge({
    name: 'ratecard_network_closed',
    help: '1 while nothing is sent on a network: too much gas was lost, or it does not include our transactions',
    labelNames: ['network'],
    registers,
    async collect() {
      this.reset()
      for (const { network, trouble } of await networks())
        this.set({ network: network.id }, trouble === undefined ? 0 : 1)
    },
  })
  for (const [name, help, of] of [
    ['ratecard_source_requests_total', 'Questions to outside sources', 'asked'],
    ['ratecard_source_failures_total', 'Questions to outside sources without a usable answer', 'failed'],
    ['ratecard_source_drifts_total', 'Answers of outside sources in another form than before', 'drifted'],
  ] as const) {
    new Counter({
      name,
      help,
      labelNames: ['source'],
      registers,
      collect() {
        this.reset()
        for (const [source, each] of figures()) this.inc({ source }, each[of])
      },
    })
  }
  new Counter({
    name: 'ratecard_source_skipped_total',
    help: 'Rows and fields of outside sources that were not as expected, by field',
    labelNames: ['source', 'field'],
    registers,
    collect() {
      this.reset()
      for (const [source, { fields }] of figures())
        for (const [field, count] of fields) this.inc({ source, field }, count)
    },
  })
  new Gauge({
    name: 'ratecard_catalog',
    help: 'The revision that is served',
    labelNames: ['revision'],
    registers,
    collect() {
      this.reset()
      this.set({ revision: revision() }, 1)
    },
  })
  return {
    observe: ({ place: route, status, outcome, ms, cached: fromCache }) => {
      requests.inc({ route, status, outcome })
      durations.observe({ route }, ms / 1000)
      if (fromCache !== undefined) cached.inc({ route, result: fromCache ? 'hit' : 'miss' })
    },
    settle: (previous, next) => {
      const { operation, network, asset, receipt, state } = next
      if (previous.receipt === undefined && receipt !== undefined) {
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
    read: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  }
}

async function countUnknown(ledger: Ledger, now: number): Promise<number> {
  const due = await ledger.due('money', now + SOON_MS, MOST_UNKNOWN)
  return due.filter(({ state }) => state === 'unknown').length
}
