import { chargedBy, type Entry, type JsonObject, type State } from '../../engine/index.ts'
import { clean, columns } from '../terminal-text.ts'
import { isoTime, spellAmount } from './row.ts'

/** Payments and money under one name: each token of each network apart, for nobody knows what they are worth together. */
class Sum {
  count = 0
  readonly #money = new Map<string, { readonly network: string; readonly asset: string; amount: bigint }>()

  add({ network, asset }: Entry, amount: bigint): void {
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

  add(name: string, entry: Entry, amount: bigint): void {
    const sum = this.#sums.get(name) ?? new Sum()
    this.#sums.set(name, sum)
    sum.add(entry, amount)
  }

  get(name: string): Sum | undefined {
    return this.#sums.get(name)
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

/** As many days as a person looks at. */
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
  #count = 0

  add(entry: Entry): void {
    const { state, receipt, operation, network, settledAt, createdAt } = entry
    this.#count += 1
    this.#states.add(state, entry, BigInt(receipt?.amount ?? 0))
    if (chargedBy(entry) === 'unknown') this.#doubt.add(entry, BigInt(entry.amount))
    if (receipt === undefined) return
    const amount = BigInt(receipt.amount)
    this.#revenue.add(entry, amount)
    this.#routes.add(clean(operation), entry, amount)
    this.#networks.add(clean(network), entry, amount)
    this.#days.add(isoTime(settledAt ?? createdAt).slice(0, 10), entry, amount)
  }

  get count(): number {
    return this.#count
  }

  text(): string {
    const days = this.#days.names.toSorted().toReversed()
    const tables = [
      ['STATE', 'PAYMENTS', this.#states.rows(STATES)],
      ['ROUTE', 'CHARGED', this.#routes.rows(this.#routes.names.toSorted())],
      ['NETWORK', 'CHARGED', this.#networks.rows(this.#networks.names.toSorted())],
      ['DAY', 'CHARGED', this.#days.rows(days.slice(0, DAYS))],
    ] as const
    const told = tables.flatMap(([name, count, rows]) =>
      rows.length === 0 ? [] : [`${columns([[name, count, 'MONEY'], ...rows])}\n`],
    )
    if (days.length > DAYS) told.push(`… and ${days.length - DAYS} earlier days; --json has them all\n`)
    told.push(`revenue: ${spell(this.#revenue)}`)
    if (this.#doubt.count > 0)
      told.push(`in doubt: ${spell(this.#doubt)}; "ratecard payments reconcile" asks the chain`)
    return told.join('\n')
  }

  /** For programs; the names are part of the interface. */
  report(): JsonObject {
    return {
      payments: this.#count,
      revenue: this.#revenue.report(),
      in_doubt: this.#doubt.report(),
      states: this.#states.report(),
      routes: this.#routes.report(),
      networks: this.#networks.report(),
      days: this.#days.report(),
    }
  }
}

function spell({ count, lines }: Sum): string {
  return `${lines.length === 0 ? '0' : lines.join(', ')} (${count} ${count === 1 ? 'payment' : 'payments'})`
}
