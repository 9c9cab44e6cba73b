import type { Address } from '../../base/address.ts'
import type { OwnTransaction } from '../../ledger/payment-record.ts'
import type { Signer } from './signer.ts'
import type { TransactionRequest, SendResult } from './transaction.ts'
import type { UnminedTransactions } from './unmined.ts'

/** The accounts that pay for gas on one network. */
export class SignerPool {
  readonly #signers: readonly Signer[]
  #next = 0

  constructor(signers: readonly Signer[]) {
    this.#signers = signers
  }

  /** The accounts that can send now if their gas suffices; empty when the chain includes none of their transactions. */
  get ready(): readonly Address[] {
    return this.#signers.filter(({ unmined }) => !unmined.isStuck).map(({ address }) => address)
  }

  has(account: Address): boolean {
    return this.#signers.some(({ address }) => address === account)
  }

  /** Known balances in wei, by account. */
  get balances(): ReadonlyMap<Address, bigint> {
    return new Map(
      this.#signers.flatMap(({ address, balance: { known } }) =>
        known === undefined ? [] : [[address, known]],
      ),
    )
  }

  /** Number of transactions mined since the start, and their cost in wei. */
  get totals(): UnminedTransactions['totals'] {
    const all = this.#signers.map(({ unmined: { totals } }) => totals)
    return {
      transactions: all.reduce((sum, { transactions }) => sum + transactions, 0),
      gasSpent: all.reduce((sum, { gasSpent }) => sum + gasSpent, 0n),
    }
  }

  get unmined(): { readonly count: number; readonly age: number } {
    const all = this.#signers.map(({ unmined }) => unmined)
    return {
      count: all.reduce((sum, { count }) => sum + count, 0),
      age: Math.max(0, ...all.map(({ age }) => age)),
    }
  }

  /** Asks the chain for what the next transactions need, unless it is known. */
  prepare(): void {
    for (const signer of this.#signers) signer.prepare()
  }

  /** A recorded transaction was sent again. */
  markResent({ signer, nonce }: OwnTransaction): void {
    this.#signers.find(({ address }) => address === signer)?.markResent(nonce)
  }

  /**
   * Lets the signer with the shortest queue send it, or the one that must. A signer without gas, or whose account another process holds,
   * is skipped; when all are, waits for one. Rejects when the transaction cannot be recorded.
   */
  async send(request: TransactionRequest): Promise<SendResult> {
    const signers = this.#byQueue().filter(({ address }) => address === (request.sender ?? address))
    let detail = 'there is no signer'
    for (const mode of signers.length > 1 ? (['at once', 'patiently'] as const) : (['patiently'] as const))
      for (const signer of signers) {
        const result = await signer.send(request, mode)
        if (result.kind !== 'busy') return result
        detail = result.detail
      }
    return { kind: 'unsent', detail }
  }

  /** Shortest queue first; equal ones in turn. */
  #byQueue(): readonly Signer[] {
    const turned = [...this.#signers.slice(this.#next), ...this.#signers.slice(0, this.#next)]
    const ordered = turned.toSorted((a, b) => a.waiting - b.waiting)
    const [first] = ordered
    if (first !== undefined) this.#next = (this.#signers.indexOf(first) + 1) % this.#signers.length
    return ordered
  }
}
