import { findAsset } from '../engine/base/networks.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'

interface Total {
  readonly labels: { readonly operation: string; readonly network: string; readonly token: string }
  readonly units: bigint
  readonly decimals: number
}

/** Amounts of settled payments by operation, network and token: in the smallest units, since sums of fractions lose precision. */
export class Revenue {
  readonly #totals = new Map<string, Total>()

  add({ operation, network, asset }: PaymentRecord, { amount }: { readonly amount: string }): void {
    const token = findAsset(network, asset)
    if (token === undefined) return
    const { symbol, decimals } = token
    const key = `${operation} ${network} ${symbol}`
    const units = (this.#totals.get(key)?.units ?? 0n) + BigInt(amount)
    this.#totals.set(key, { labels: { operation, network, token: symbol }, units, decimals })
  }

  /** In units of the tokens. */
  rows(): (readonly [labels: Total['labels'], amount: number])[] {
    return Array.from(this.#totals.values(), ({ labels, units, decimals }) => [
      labels,
      Number(units) / 10 ** decimals,
    ])
  }
}
