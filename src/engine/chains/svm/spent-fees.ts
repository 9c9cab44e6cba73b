/** What the transactions of this process have cost on one network since its start. */
export class SpentFees {
  #transactions = 0
  #lamports = 0n

  /** `fee`: lamports. */
  note(fee: bigint): void {
    this.#transactions += 1
    this.#lamports += fee
  }

  get totals(): { readonly transactions: number; readonly gasSpent: bigint } {
    return { transactions: this.#transactions, gasSpent: weiOf(this.#lamports) }
  }
}

/** Lamports in the unit in which fees are recorded and counted on every network: 18 decimals of the coin. */
export function weiOf(lamports: bigint): bigint {
  return lamports * 1_000_000_000n
}
