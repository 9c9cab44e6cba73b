import type { Entry, JsonObject } from '../../engine/index.ts'
import { spellAmount } from './row.ts'

/** Payments and money under one name: each token of each network apart, for nobody knows what they are worth together. */
export class Sum {
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
export class Sums {
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
