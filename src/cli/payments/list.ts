import type { JsonObject } from '../../engine/base/json.ts'
import { chargeStatus, isRefundDue } from '../../engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord, State } from '../../engine/ledger/payment-record.ts'
import { shortDecimal } from '../../engine/base/money.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import { type Color, columnsFor, linesFor, type Paint, painterFor } from '../terminal-text.ts'
import { countOf } from '../../engine/base/words.ts'
import { clean } from '../../command-line/printable.ts'
import type { Call, Terminal } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { withLedger } from './open-ledger.ts'
import { rowOf, type PaymentRow, isoTime, spellAmount } from './payment-row.ts'
import { payerFilterOf } from './payer-filter.ts'
import { parsePastTime } from './parse-time.ts'

/** Rows that a person reads. */
const SHOWN = 50

export async function listPayments(call: Call): Promise<number> {
  const { flags, terminal } = call
  if (flags.given('channels')) return (await import('./list-channels.ts')).listChannels(call)
  const fits = filterOf(call, systemRuntime.now())
  const limit = limitOf(call)
  return withLedger(call, async (ledger) => {
    const totals = new Totals()
    const newest = new Newest(limit)
    for await (const record of ledger.records()) {
      if (!fits(record)) continue
      totals.add(record)
      newest.add(rowOf(record))
    }
    const rows = newest.rows()
    if (flags.given('totals')) printTotals(call, totals)
    else if (flags.given('json')) terminal.out(JSON.stringify(rows, null, 2))
    else print(call, rows, totals)
    return 0
  })
}

function filterOf(call: Call, now: number): (record: PaymentRecord) => boolean {
  const { flags } = call
  const state = stateOf(flags.text('state'))
  const route = flags.text('route')
  if (route !== undefined && !/^[^/\s]\S*$/.test(route))
    throw new UsageError(
      `--route takes an operation as the list names it, such as util/workday; not "${route}"`,
    )
  const isOfPayer = payerFilterOf(call)
  const since = flags.text('since')
  const start = since === undefined ? 0 : parsePastTime('since', since, now)
  return (record) =>
    record.createdAt >= start &&
    (state === undefined || record.state === state) &&
    (route === undefined || record.operation === route) &&
    isOfPayer(record)
}

function stateOf(text: string | undefined): State | undefined {
  if (text === undefined) return undefined
  const state = STATES.find((each) => each === text)
  if (state === undefined) throw new UsageError(`--state takes one of ${STATES.join(', ')}; not "${text}"`)
  return state
}

/** A program that asks for no number gets every payment. */
function limitOf({ flags }: Call): number {
  const text = flags.text('limit')
  if (text === undefined) return flags.given('json') ? Infinity : SHOWN
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--limit takes a number from 1; not "${text}"`)
  return Number(text)
}

/** Keeps the last rows of many. */
class Newest {
  readonly #limit: number
  #rows: PaymentRow[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  add(row: PaymentRow): void {
    this.#rows.push(row)
    if (this.#rows.length > 2 * this.#limit) this.#rows = this.#rows.slice(-this.#limit)
  }

  rows(): PaymentRow[] {
    return (this.#limit === Infinity ? this.#rows : this.#rows.slice(-this.#limit)).toReversed()
  }
}

const HEAD = [
  'TIME',
  'ID',
  'STATE',
  'CHARGED',
  'AMOUNT',
  'NETWORK',
  'OPERATION',
  'PAYER',
  'TRANSACTION',
  'AUTHORIZED',
  'USAGE',
]
/** What a person needs to find a payment, within the width of a terminal; `payments show` has the rest. */
const SHORT_HEAD = ['TIME (UTC)', 'ID', 'STATE', 'AMOUNT', 'OPERATION']

function print(call: Call, rows: readonly PaymentRow[], totals: Totals): void {
  const { out, err, reader } = call.terminal
  if (rows.length === 0) {
    err('no payments')
    return
  }
  if (reader === 'person') {
    const paint = painterFor(call)
    out(columnsFor(call.terminal, [SHORT_HEAD, ...rows.map((row) => shortCellsOf(row, paint))]))
  } else out([HEAD, ...rows.map(cellsOf)].map((line) => line.join('\t')).join('\n'))
  if (rows.length < totals.count) out(`… the newest ${rows.length} of ${totals.count}; --limit shows more`)
  out(`\n${totals.text(call.terminal)}`)
}

function printTotals({ terminal, flags }: Call, totals: Totals): void {
  if (flags.given('json')) terminal.out(JSON.stringify(totals.report(), null, 2))
  else if (totals.count === 0) terminal.err('no payments')
  else terminal.out(totals.text(terminal))
}

function cellsOf(row: PaymentRow): string[] {
  const { payment, time, state, charged, amount, token, network, operation, payer, transaction } = row
  const metered = [row.authorized === null ? '-' : `${row.authorized} ${token}`, row.usage ?? '-']
  const sold = [time, payment, state, charged, `${amount} ${token}`, network, operation, payer]
  return [...sold, transaction ?? '-', ...metered]
}

const COLORS: Readonly<Record<PaymentRow['charged'], Color>> = { yes: 'green', no: 'grey', unknown: 'yellow' }

function shortCellsOf(
  { payment, time, state, charged, amount, authorized, token, operation }: PaymentRow,
  paint: Paint,
): string[] {
  const at = time.slice(5, 16).replace('T', ' ')
  const most = authorized === null ? '' : ` of ${shortDecimal(authorized)}`
  return [at, payment, paint(COLORS[charged], state), `${shortDecimal(amount)}${most} ${token}`, operation]
}

/** Payments and money under one name: each token of each network separately, since they cannot be added up. */
class Sum {
  count = 0
  readonly #money = new Map<string, { readonly network: string; readonly asset: string; amount: bigint }>()

  add({ network, asset }: PaymentRecord, amount: bigint): void {
    this.count += 1
    const name = `${network} ${asset}`
    const money = this.#money.get(name) ?? { network, asset, amount: 0n }
    money.amount += amount
    this.#money.set(name, money)
  }

  /** For people: `0.255000 USDC on eip155:8453`. */
  get lines(): string[] {
    return this.money.map(({ amount, token, network }) => `${amount} ${token} on ${network}`)
  }

  /** For programs; the names are part of the interface. */
  report(): JsonObject {
    return { payments: this.count, money: this.money }
  }

  get money(): { readonly amount: string; readonly token: string; readonly network: string }[] {
    return [...this.#money.values()].map(({ network, asset, amount }) => ({
      ...spellAmount(amount, network, asset),
      network,
    }))
  }
}

/** Sums by name. */
class Sums {
  readonly #sums = new Map<string, Sum>()

  add(name: string, record: PaymentRecord, amount: bigint): void {
    const sum = this.#sums.get(name) ?? new Sum()
    this.#sums.set(name, sum)
    sum.add(record, amount)
  }

  get names(): string[] {
    return [...this.#sums.keys()]
  }

  /** Rows of a table, for those names that have payments. */
  rows(names: readonly string[]): string[][] {
    return names.flatMap((name) => {
      const sum = this.#sums.get(name)
      return sum === undefined ? [] : [[name, String(sum.count), sum.lines.join(', ')]]
    })
  }

  report(): JsonObject {
    return Object.fromEntries([...this.#sums].map(([name, sum]) => [name, sum.report()]))
  }
}

export const STATES: readonly State[] = [
  'reserved',
  'fulfilled',
  'settling',
  'settled',
  'sent',
  'voided',
  'unknown',
]

/** Days that a person reads. */
const DAYS = 31

/** How many payments there are in each state, what they have brought by route, network and day, and what is in doubt. */
export class Totals {
  readonly #states = new Sums()
  readonly #routes = new Sums()
  readonly #networks = new Sums()
  /** In UTC, by when they were settled. */
  readonly #days = new Sums()
  readonly #revenue = new Sum()
  readonly #doubt = new Sum()
  readonly #refundsDue = new Sum()
  readonly #refunded = new Sum()
  count = 0

  add(record: PaymentRecord): void {
    const { state, receipt, operation, network, settledAt, createdAt } = record
    this.count += 1
    this.#states.add(state, record, BigInt(receipt?.amount ?? 0))
    if (chargeStatus(record) === 'unknown') this.#doubt.add(record, BigInt(record.amount))
    if (receipt === undefined) return
    const amount = BigInt(receipt.amount)
    this.#revenue.add(record, amount)
    if (isRefundDue(record, systemRuntime.now())) this.#refundsDue.add(record, amount)
    else if (record.refund !== undefined) this.#refunded.add(record, amount)
    this.#routes.add(clean(operation), record, amount)
    this.#networks.add(clean(network), record, amount)
    this.#days.add(isoTime(settledAt ?? createdAt).slice(0, 10), record, amount)
  }

  text(terminal: Pick<Terminal, 'reader'>): string {
    const days = this.#days.names.toSorted().toReversed()
    const tables = [
      ['STATE', 'PAYMENTS', this.#states.rows(STATES)],
      ['ROUTE', 'CHARGED', this.#routes.rows(this.#routes.names.toSorted())],
      ['NETWORK', 'CHARGED', this.#networks.rows(this.#networks.names.toSorted())],
      ['DAY', 'CHARGED', this.#days.rows(days.slice(0, DAYS))],
    ] as const
    const lines = tables.flatMap(([name, count, rows]) =>
      rows.length === 0 ? [] : [`${columnsFor(terminal, [[name, count, 'MONEY'], ...rows])}\n`],
    )
    if (days.length > DAYS) lines.push(`… and ${days.length - DAYS} earlier days; --json has them all\n`)
    const sums = [`revenue: ${spell(this.#revenue)}`]
    if (this.#refunded.count > 0) sums.push(`refunded: ${spell(this.#refunded)}`)
    if (this.#refundsDue.count > 0)
      sums.push(`refunds due: ${spell(this.#refundsDue)}; "ratecard payments refund --due" sends them`)
    if (this.#doubt.count > 0)
      sums.push(`in doubt: ${spell(this.#doubt)}; "ratecard payments reconcile" asks the chain`)
    return [...lines, ...sums.map((line) => linesFor(terminal, line))].join('\n')
  }

  /** For programs; the names are part of the interface. */
  report(): JsonObject {
    return {
      payments: this.count,
      revenue: this.#revenue.report(),
      refunded: this.#refunded.report(),
      refunds_due: this.#refundsDue.report(),
      in_doubt: this.#doubt.report(),
      states: this.#states.report(),
      routes: this.#routes.report(),
      networks: this.#networks.report(),
      days: this.#days.report(),
    }
  }
}

function spell({ count, lines }: Sum): string {
  return `${lines.length === 0 ? '0' : lines.join(', ')} (${countOf(count, 'payment')})`
}
