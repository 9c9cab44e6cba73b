import type { Address } from '../../address.ts'
import type { Signer } from './signer.ts'
import type { SendResult, SignerBusy, TransactionRequest } from './transaction.ts'

/** The accounts that pay the gas on one network. */
export class SignerPool {
  readonly #signers: readonly Signer[]
  #next = 0

  constructor(signers: readonly Signer[]) {
    this.#signers = signers
  }

  /** The accounts that may send now, if they can pay for the gas; empty when the chain includes nothing of theirs. */
  get ready(): readonly Address[] {
    return this.#signers.filter(({ isStuck }) => !isStuck).map(({ address }) => address)
  }

  /** Wei by account, of those that are known. */
  get balances(): ReadonlyMap<Address, bigint> {
    return new Map(
      this.#signers.flatMap(({ address, balance: { known } }) =>
        known === undefined ? [] : [[address, known]],
      ),
    )
  }

  /** Transactions in no block yet, and the age of the oldest in milliseconds. */
  get unmined(): { readonly count: number; readonly age: number } {
    const all = this.#signers.map(({ unmined }) => unmined)
    return {
      count: all.reduce((sum, { count }) => sum + count, 0),
      age: Math.max(0, ...all.map(({ age }) => age)),
    }
  }

  /**
   * Has the signer with the shortest queue send it. One that cannot now, for want of gas or because another process has
   * the account, is passed over; when all are, they are waited for. Rejects when the transaction cannot be recorded.
   */
  async send(request: TransactionRequest): Promise<SendResult> {
    const signers = this.#byQueue()
    let last: SignerBusy = NOBODY
    for (const mode of signers.length > 1 ? (['at once', 'patiently'] as const) : (['patiently'] as const))
      for (const signer of signers) {
        const result = await signer.send(request, mode)
        if (result.kind !== 'busy') return result
        last = result
      }
    return { kind: 'unsent', detail: last.detail }
  }

  /** Shortest queue first; among equals, each in its turn. */
  #byQueue(): readonly Signer[] {
    const turned = [...this.#signers.slice(this.#next), ...this.#signers.slice(0, this.#next)]
    const ordered = turned.toSorted((a, b) => a.waiting - b.waiting)
    const [first] = ordered
    if (first !== undefined) this.#next = (this.#signers.indexOf(first) + 1) % this.#signers.length
    return ordered
  }
}

const NOBODY: SignerBusy = { kind: 'busy', detail: 'there is no signer' }
