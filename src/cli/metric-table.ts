import { findAsset } from '../engine/base/networks.ts'
import type { SourceFigures } from '../engine/service-definition.ts'
import type { NetworkHealth } from '../engine/payment/network-health.ts'
import type { ChannelBalance } from '../engine/x402/batch-settlement-evm/channel-balances.ts'
import type { Readings } from './metric-readings.ts'

/** Every label is a name of the catalog, of a setting, of a network or of an error: none can be made up by a caller. */
export type Labels = Readonly<Record<string, string>>
type Row = readonly [labels: Labels, value: number]

interface Counted {
  readonly help: string
  readonly labels: readonly string[]
}

/** What is counted as it happens. */
export const COUNTED = {
  ratecard_requests_total: {
    help: 'Requests by route template and outcome: ok, or the code of the problem',
    labels: ['route', 'status', 'outcome'],
  },
  ratecard_upstream_failures_total: {
    help: 'Answers that failed because an upstream did, by its cause: refused, name, tls, timeout, status, type or body',
    labels: ['route', 'cause'],
  },
  ratecard_catalog_reloads_total: {
    help: 'Times the changed catalog was read: served from then on, or refused',
    labels: ['result'],
  },
  ratecard_facilitator_requests_total: {
    help: 'Requests to facilitators: ok, refused (not this payment), pending, declined (not us), unreached or lost',
    labels: ['facilitator', 'request', 'result'],
  },
  ratecard_cache_answers_total: {
    help: 'Answers that came from the cache (hit) or were made for the request (miss)',
    labels: ['route', 'result'],
  },
  ratecard_payments_total: {
    help: 'Payments that became settled, unknown or voided, as the ledger has it',
    labels: ['operation', 'network', 'outcome'],
  },
  ratecard_metered_payments_total: {
    help: 'Settled payments whose amount was known after the work',
    labels: ['operation', 'network'],
  },
  ratecard_metered_usage_total: {
    help: 'What these payments have used, by the part of the price that counts it',
    labels: ['operation', 'part'],
  },
  ratecard_rpc_requests_total: { help: 'Requests to the node of a network', labels: ['network'] },
  ratecard_rpc_failures_total: {
    help: 'Requests to the node of a network that failed, or whose answer cannot be read',
    labels: ['network'],
  },
} as const satisfies Readonly<Record<string, Counted>>

/** A metric whose values are looked up when it is read. */
export interface Reading extends Counted {
  readonly name: string
  readonly kind: 'counter' | 'gauge'
  /** How the values of processes that serve together become one. Default: counters are summed, of others the largest counts. */
  readonly together?: 'sum'
  readonly rows: (readings: Readings) => readonly Row[] | Promise<readonly Row[]>
}

const WEI = 1e18

/** One value of each network. */
function byNetwork(
  valueOf: (health: NetworkHealth) => number,
  labelsOf: (health: NetworkHealth) => Labels = () => ({}),
): Reading['rows'] {
  return async (readings) =>
    (await readings.networks()).map((health) => [
      { network: health.network.id, ...labelsOf(health) },
      valueOf(health),
    ])
}

function withCoin({ network: { coin } }: NetworkHealth): Labels {
  return { coin }
}

/** One figure of each outside source. */
function bySource(figure: keyof Pick<SourceFigures, 'asked' | 'failed' | 'drifted'>): Reading['rows'] {
  return ({ figures }) => Array.from(figures, ([source, each]) => [{ source }, each[figure]])
}

/** One value of each payment that is owed back: values with the same labels are summed. */
function byRefundDue(valueOf: (amount: number) => number): Reading['rows'] {
  return async (readings) =>
    (await readings.refundsDue()).map(({ network, asset, receipt }) => {
      const { symbol: token, decimals } = findAsset(network, asset) ?? { symbol: 'unknown', decimals: 0 }
      return [{ network, token }, valueOf(Number(receipt?.amount ?? 0) / 10 ** decimals)]
    })
}

/** One value of each channel: values with the same labels are summed. */
function byChannels(valueOf: (channel: ChannelBalance, decimals: number) => number): Reading['rows'] {
  return async (readings) =>
    (await readings.channels()).map((channel) => {
      const { network } = channel
      const { symbol: token, decimals } = findAsset(network, channel.token) ?? {
        symbol: 'unknown',
        decimals: 0,
      }
      return [{ network, token }, valueOf(channel, decimals)]
    })
}

export const READINGS: readonly Reading[] = [
  {
    name: 'ratecard_revenue_total',
    kind: 'counter',
    help: 'Settled amounts in units of the token, as the ledger has it',
    labels: ['operation', 'network', 'token'],
    rows: ({ revenue }) => revenue.rows(),
  },
  {
    name: 'ratecard_authorized_total',
    kind: 'counter',
    help: 'What buyers had signed for at most, of the same payments, in units of the token',
    labels: ['operation', 'network', 'token'],
    rows: ({ authorized }) => authorized.rows(),
  },
  {
    name: 'ratecard_payments_unknown',
    kind: 'gauge',
    help: 'Payments of which nobody knows yet whether they have settled, over all processes of the ledger',
    labels: [],
    rows: async (readings) => [[{}, await readings.unknown()]],
  },
  {
    name: 'ratecard_streams_unpaid',
    kind: 'gauge',
    help: 'Streams of the last hour that were sent on credit and not paid, over all processes of the ledger',
    labels: [],
    rows: async (readings) => [[{}, (await readings.unpaid()).count]],
  },
  {
    name: 'ratecard_streams_unpaid_usd',
    kind: 'gauge',
    help: 'What these streams have cost, in USD',
    labels: [],
    rows: async (readings) => [[{}, Number((await readings.unpaid()).amount) / 1e6]],
  },
  {
    name: 'ratecard_ledger_closed',
    kind: 'gauge',
    help: '1 while the ledger takes no payment: it was emptied or replaced (lost), or cannot be reached or trusted (unavailable)',
    labels: ['reason'],
    rows: async (readings) => {
      const fault = await readings.ledgerFault()
      return ['lost', 'unavailable'].map((reason) => [{ reason }, fault === reason ? 1 : 0])
    },
  },
  {
    name: 'ratecard_refunds_due',
    kind: 'gauge',
    help: 'Payments whose money is owed back, over all processes of the ledger',
    labels: ['network', 'token'],
    rows: byRefundDue(() => 1),
  },
  {
    name: 'ratecard_refunds_due_amount',
    kind: 'gauge',
    help: 'What is owed back, in units of the token',
    labels: ['network', 'token'],
    rows: byRefundDue((amount) => amount),
  },
  {
    name: 'ratecard_channels_unclaimed_amount',
    kind: 'gauge',
    help: 'What channels owe and was not claimed yet, in units of the token',
    labels: ['network', 'token'],
    rows: byChannels(({ unclaimed }, decimals) => Number(unclaimed) / 10 ** decimals),
  },
  {
    name: 'ratecard_channels_unclaimed_at_risk_amount',
    kind: 'gauge',
    help: 'The part of it whose channel a withdrawal would empty, or that cannot be claimed',
    labels: ['network', 'token'],
    rows: byChannels(({ unclaimed, withdrawal, setAside, deposited, charged }, decimals) => {
      const left = deposited - (withdrawal?.amount ?? 0n)
      return setAside !== undefined || charged > left ? Number(unclaimed) / 10 ** decimals : 0
    }),
  },
  {
    name: 'ratecard_signer_balance',
    kind: 'gauge',
    help: 'What a signer has for gas, in units of the coin, as of the last look less what was promised since',
    labels: ['network', 'signer', 'coin'],
    rows: async (readings) =>
      (await readings.networks()).flatMap(({ network: { id, coin }, balances }) =>
        Array.from(balances, ([signer, wei]): Row => [{ network: id, signer, coin }, Number(wei) / WEI]),
      ),
  },
  {
    name: 'ratecard_gas_lost_last_hour',
    kind: 'gauge',
    help: 'What reverted transactions have cost in the last hour over all processes of the ledger, in units of the coin',
    labels: ['network', 'coin'],
    rows: byNetwork(({ gasLost }) => Number(gasLost) / WEI, withCoin),
  },
  {
    name: 'ratecard_gas_spent',
    kind: 'gauge',
    together: 'sum',
    help: 'What the mined transactions of this process have cost since its start, in units of the coin',
    labels: ['network', 'coin'],
    rows: byNetwork(({ totals }) => Number(totals.gasSpent) / WEI, withCoin),
  },
  {
    name: 'ratecard_settlement_transactions',
    kind: 'gauge',
    together: 'sum',
    help: 'Transactions of this process that were mined since its start; one may settle several payments',
    labels: ['network'],
    rows: byNetwork(({ totals }) => totals.transactions),
  },
  {
    name: 'ratecard_signer_oldest_unmined_seconds',
    kind: 'gauge',
    help: 'How long the lowest transaction of a signer that is in no block yet has waited',
    labels: ['network'],
    rows: byNetwork(({ unmined }) => unmined.age / 1000),
  },
  {
    name: 'ratecard_network_closed',
    kind: 'gauge',
    help: '1 while nothing is sent on a network: too much gas was lost, or it does not include our transactions',
    labels: ['network'],
    rows: byNetwork(({ trouble }) => (trouble === undefined ? 0 : 1)),
  },
  {
    name: 'ratecard_source_requests_total',
    kind: 'counter',
    help: 'Questions to outside sources',
    labels: ['source'],
    rows: bySource('asked'),
  },
  {
    name: 'ratecard_source_failures_total',
    kind: 'counter',
    help: 'Questions to outside sources without a usable answer',
    labels: ['source'],
    rows: bySource('failed'),
  },
  {
    name: 'ratecard_source_drifts_total',
    kind: 'counter',
    help: 'Answers of outside sources in another form than before',
    labels: ['source'],
    rows: bySource('drifted'),
  },
  {
    name: 'ratecard_source_skipped_total',
    kind: 'counter',
    help: 'Rows and fields of outside sources that were not as expected, by field',
    labels: ['source', 'field'],
    rows: ({ figures }) =>
      Array.from(figures).flatMap(([source, { fields }]) =>
        Array.from(fields, ([field, count]): Row => [{ source, field }, count]),
      ),
  },
  {
    name: 'ratecard_ledger_bytes',
    kind: 'gauge',
    help: 'Size of the file of the ledger, without the answers that are kept for redelivery',
    labels: [],
    rows: async (readings) => {
      const bytes = await readings.ledgerBytes()
      return bytes === undefined ? [] : [[{}, bytes]]
    },
  },
  {
    name: 'ratecard_catalog',
    kind: 'gauge',
    help: 'The revision that is served',
    labels: ['revision'],
    rows: ({ revision }) => [[{ revision }, 1]],
  },
  {
    name: 'ratecard_catalog_refused',
    kind: 'gauge',
    help: '1 while the catalog file cannot be served, and an earlier revision is served in its place',
    labels: [],
    rows: ({ isRefused }) => [[{}, isRefused ? 1 : 0]],
  },
  {
    name: 'ratecard_deny_list_age_seconds',
    kind: 'gauge',
    help: 'Time since a file of payments.payers.deny was written',
    labels: ['list'],
    rows: async (readings) =>
      (await readings.denyListAges()).map(([list, seconds]): Row => [{ list }, seconds]),
  },
]
