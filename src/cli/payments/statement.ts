import { formatDecimal, formatPrice, parseDecimal, toMicros } from '../../engine/base/money.ts'
import { findAsset, findAnyNetwork, NETWORKS } from '../../engine/base/networks.ts'
import { systemRuntime } from '../../engine/base/runtime.ts'
import { chargeStatus, isRefundDue } from '../../engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../../engine/ledger/payment-record.ts'
import type { Call } from '../command.ts'
import { UsageError } from '../../command-line/usage-error.ts'
import { clean } from '../../command-line/printable.ts'
import { linesFor, tableFor } from '../terminal-text.ts'
import { countOf } from '../../engine/base/words.ts'
import { csvLine } from './export.ts'
import { withLedger } from './open-ledger.ts'
import { spellAmount } from './payment-row.ts'

/** One month of the ledger: sales, refunds and gas of each network and asset, as rows of their own. */
export async function printStatement(call: Call): Promise<number> {
  const { flags, terminal } = call
  const month = monthOf(call, systemRuntime.now())
  if (flags.given('csv') && flags.given('json')) throw new UsageError('--csv and --json exclude each other')
  const prices = coinPricesOf(flags.all('coin-price'))
  return withLedger(call, async (ledger) => {
    const statement = new Statement(month)
    for await (const record of ledger.records()) statement.add(record)
    const rows = statement.rows(prices)
    const cells = rows.map((row) => COLUMNS.map((column) => row[column]))
    if (flags.given('csv')) for (const line of [COLUMNS, ...cells]) terminal.out(csvLine(line))
    else if (flags.given('json')) terminal.out(JSON.stringify(rows, null, 2))
    else if (rows.length > 0)
      terminal.out(
        tableFor(terminal, {
          heads: COLUMNS.map((column) => column.toUpperCase()),
          // The id of a network of Solana is long: the last column is broken.
          short: ['TOKEN', 'KIND', 'PAYMENTS', 'AMOUNT', 'USD', 'NETWORK'],
          rows: cells,
        }),
      )
    else terminal.out(`no sale and no refund in ${month.name}`)
    for (const note of statement.notes(rows, ledger.now())) terminal.err(linesFor(terminal, note))
    return 0
  })
}

/** In UTC: from its first moment up to the first one of the next month, in milliseconds since the epoch. */
interface Month {
  readonly name: string
  readonly start: number
  readonly end: number
}

function monthOf({ positionals }: Call, now: number): Month {
  const [name = ''] = positionals
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(name) ?? []
  if (year === undefined || number === undefined)
    throw new UsageError(`name a month, such as 2026-11; not "${name}"`)
  const start = Date.UTC(Number(year), Number(number) - 1)
  if (start > now) throw new UsageError(`${name} is in the future`)
  return { name, start, end: Date.UTC(Number(year), Number(number)) }
}

const COINS = [...new Set(NETWORKS.map(({ coin }) => coin))]

/** Micro-dollars of one coin, by its symbol. */
function coinPricesOf(texts: readonly string[]): ReadonlyMap<string, bigint> {
  return new Map(
    texts.map((text) => {
      const [coin = '', number = ''] = text.split('=', 2)
      const price = parseDecimal(number, 6)
      if (!COINS.includes(coin) || price === undefined)
        throw new UsageError(
          `--coin-price takes one of ${COINS.join(', ')} with its price in USD, such as ETH=3021.55; not "${text}"`,
        )
      return [coin, price]
    }),
  )
}

/** The names are part of the interface: columns may be added at the end, and none is renamed. */
const COLUMNS = [
  'month',
  // CAIP-2.
  'network',
  'token',
  'asset',
  // `sales`, `refunds` or `gas`.
  'kind',
  'payments',
  // Never negative, in `unit`.
  'amount',
  'unit',
  // Empty when it is not known.
  'usd',
] as const

type StatementRow = Readonly<Record<(typeof COLUMNS)[number], string>>

/** Payments and atomic units, or wei. */
interface Sum {
  readonly payments: number
  readonly amount: bigint
}

const NOTHING: Sum = { payments: 0, amount: 0n }

const plus = ({ payments, amount }: Sum, more: string): Sum => ({
  payments: payments + 1,
  amount: amount + BigInt(more),
})

interface Account {
  readonly network: string
  readonly asset: string
  sales: Sum
  refunds: Sum
  gas: Sum
}

class Statement {
  readonly #month: Month
  readonly #accounts = new Map<string, Account>()
  #doubts = 0
  #due = 0

  constructor(month: Month) {
    this.#month = month
  }

  add(record: PaymentRecord): void {
    const { receipt, refund, settledAt, createdAt, updatedAt } = record
    if (receipt === undefined) {
      if (chargeStatus(record) === 'unknown' && this.#covers(createdAt)) this.#doubts += 1
      return
    }
    if (this.#covers(settledAt ?? createdAt)) {
      const account = this.#accountOf(record)
      account.sales = plus(account.sales, receipt.amount)
      if (receipt.gasCost !== undefined) account.gas = plus(account.gas, receipt.gasCost)
      if (isRefundDue(record, systemRuntime.now())) this.#due += 1
    }
    if (refund?.kind === 'sent' && this.#covers(refund.sentAt ?? updatedAt)) {
      const account = this.#accountOf(record)
      account.refunds = plus(account.refunds, receipt.amount)
    }
  }

  #covers(time: number): boolean {
    return time >= this.#month.start && time < this.#month.end
  }

  #accountOf({ network, asset }: PaymentRecord): Account {
    const name = `${network} ${asset.toLowerCase()}`
    const account = this.#accounts.get(name) ?? {
      network,
      asset,
      sales: NOTHING,
      refunds: NOTHING,
      gas: NOTHING,
    }
    this.#accounts.set(name, account)
    return account
  }

  rows(prices: ReadonlyMap<string, bigint>): StatementRow[] {
    const names = [...this.#accounts.keys()].toSorted()
    return names.flatMap((name) => {
      const account = this.#accounts.get(name)
      return account === undefined ? [] : rowsOf(this.#month.name, account, prices)
    })
  }

  /** What the rows do not say. */
  notes(rows: readonly StatementRow[], now: number): string[] {
    const gas = rows.filter(({ kind }) => kind === 'gas')
    const unpriced = [...new Set(gas.flatMap(({ usd, unit }) => (usd === '' ? [unit] : [])))]
    return [
      ...(now < this.#month.end ? [`${this.#month.name} is not over yet`] : []),
      ...(this.#doubts > 0 ? [`left out: ${countOf(this.#doubts, 'payment')} whose charge is unknown`] : []),
      ...(this.#due > 0
        ? [
            `${countOf(this.#due, 'refund')} of these sales not sent yet: "ratecard payments refund --due" sends them`,
          ]
        : []),
      ...(gas.length > 0
        ? [
            'gas is what own settlements of sales have cost; that of refunds and of reverted transactions is not in the ledger',
          ]
        : []),
      ...unpriced.map((coin) => `for gas in USD, add --coin-price ${coin}=PRICE`),
    ]
  }
}

function rowsOf(month: string, account: Account, prices: ReadonlyMap<string, bigint>): StatementRow[] {
  const { network, asset, sales, refunds, gas } = account
  const { symbol: token } = findAsset(network, asset) ?? { symbol: '' }
  const base = { month, network: clean(network), token, asset: clean(asset) }
  const money = (kind: string, { payments, amount: atomic }: Sum): StatementRow[] => {
    if (payments === 0) return []
    const { amount, token: unit } = spellAmount(atomic, network, asset)
    // Every known token is a dollar.
    return [{ ...base, kind, payments: String(payments), amount, unit, usd: token === '' ? '' : amount }]
  }
  return [...money('sales', sales), ...money('refunds', refunds), ...gasRows(base, gas, prices)]
}

const WEI_DECIMALS = 18

function gasRows(
  base: Pick<StatementRow, 'month' | 'network' | 'token' | 'asset'>,
  { payments, amount: wei }: Sum,
  prices: ReadonlyMap<string, bigint>,
): StatementRow[] {
  if (payments === 0) return []
  const coin = findAnyNetwork(base.network)?.coin
  const price = coin === undefined ? undefined : prices.get(coin)
  const one = 10n ** BigInt(WEI_DECIMALS)
  return [
    {
      ...base,
      kind: 'gas',
      payments: String(payments),
      amount: coin === undefined ? wei.toString() : formatDecimal(wei, WEI_DECIMALS),
      unit: coin ?? 'wei',
      // To the nearest micro-dollar.
      usd: price === undefined ? '' : formatPrice(toMicros((wei * price + one / 2n) / one)),
    },
  ]
}
