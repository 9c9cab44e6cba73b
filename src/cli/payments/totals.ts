import { chargedBy, type Entry, type State } from '../../engine/index.ts'
import { columns } from '../columns.ts'
import { spellAmount } from './row.ts'

/** Payments and money under one name. */
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

  get lines(): string[] {
    return [...this.#money.values()].map(({ network, asset, amount }) => {
      const spelt = spellAmount(amount, network, asset)
      return `${spelt.amount} ${spelt.token} on ${network}`
    })
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

/** How many payments there are in each state, what they have brought, and what is in doubt. */
export class Totals {
  readonly #states = new Map<State, Sum>()
  readonly #revenue = new Sum()
  readonly #doubt = new Sum()

  add(entry: Entry): void {
    const { state, receipt } = entry
    const sum = this.#states.get(state) ?? new Sum()
    this.#states.set(state, sum)
    sum.add(entry, BigInt(receipt?.amount ?? 0))
    if (receipt !== undefined) this.#revenue.add(entry, BigInt(receipt.amount))
    if (chargedBy(entry) === 'unknown') this.#doubt.add(entry, BigInt(entry.amount))
  }

  get count(): number {
    return [...this.#states.values()].reduce((all, { count }) => all + count, 0)
  }

  text(): string {
    const rows = STATES.flatMap((state) => {
      const sum = this.#states.get(state)
      return sum === undefined ? [] : [[state, String(sum.count), sum.lines.join(', ')]]
    })
    const lines = [columns([['STATE', 'PAYMENTS', 'CHARGED'], ...rows])]
    lines.push(`revenue: ${spell(this.#revenue)}`)
    if (this.#doubt.count > 0)
      lines.push(`in doubt: ${spell(this.#doubt)}; "ratecard payments reconcile" asks the chain`)
    return lines.join('\n')
  }
}

function spell({ count, lines }: Sum): string {
  return `${lines.length === 0 ? '0' : lines.join(', ')} (${count} ${count === 1 ? 'payment' : 'payments'})`
}
