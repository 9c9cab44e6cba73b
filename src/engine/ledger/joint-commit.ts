import type { Addition, Change, Ledger } from './ledger.ts'

/** The change of another payment in the same commit failed: nothing was stored for this one either. */
export class CommitAbandonedError extends Error {
  constructor() {
    super('the commit was abandoned: another payment of it could not be changed')
    this.name = 'CommitAbandonedError'
  }
}

/** Stores the changes of several payments in one commit: all or none. */
export class JointCommit {
  readonly #ledger: Ledger
  readonly #parties: number
  readonly #changes: (Change | Addition)[] = []
  readonly #outcome: Promise<void>
  #resolve: (outcome: Promise<void>) => void = () => undefined
  #reject: (fault: CommitAbandonedError) => void = () => undefined

  constructor(ledger: Ledger, parties: number) {
    this.#ledger = ledger
    this.#parties = parties
    this.#outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#outcome.catch(() => undefined) // Nobody may be waiting when it is abandoned.
  }

  /** Resolves once the changes of all parties are stored; rejects with `CommitAbandonedError` when none is. */
  async store(change: Change | Addition): Promise<void> {
    this.#changes.push(change)
    if (this.#changes.length === this.#parties) this.#resolve(this.#commit())
    return this.#outcome
  }

  /** Withdraws one party that has nothing to store. Without effect once the commit has begun. */
  abandon(): void {
    this.#reject(new CommitAbandonedError())
  }

  async #commit(): Promise<void> {
    if (!(await this.#ledger.commit(this.#changes))) throw new CommitAbandonedError()
  }
}
