import type { Errand, Sent, Unable } from './errand.ts'
import type { Signer } from './signer.ts'

/** The accounts that pay the gas on one network. */
export class Signers {
  readonly #signers: readonly Signer[]
  #next = 0

  constructor(signers: readonly Signer[]) {
    this.#signers = signers
  }

  /**
   * Has the errand done by whoever has least to do. One who cannot now, for want of gas or because another process has
   * the account, is passed over; when all are, they are waited for. Rejects when the transaction cannot be recorded.
   */
  async send(errand: Errand): Promise<Sent> {
    const signers = this.#byQueue()
    let last: Unable = { kind: 'unable', detail: 'there is nobody to settle' }
    for (const effort of signers.length > 1 ? (['at once', 'patiently'] as const) : (['patiently'] as const))
      for (const signer of signers) {
        const sent = await signer.send(errand, effort)
        if (sent.kind !== 'unable') return sent
        last = sent
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
