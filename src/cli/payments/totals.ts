import { chargedBy, type Entry, type JsonObject, type State } from '../../engine/index.ts'
import { clean } from '../clean.ts'
import { columns } from '../columns.ts'
import { isoTime } from './row.ts'
import { Sum, Sums } from './sum.ts'

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
