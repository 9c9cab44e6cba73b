import type { Address } from '../../address.ts'
import type { Network } from '../../networks.ts'
import type { Chain, Fees } from '../evm/chain.ts'
import { checkGas, gasWarning } from './gas.ts'

/** How long a look at the balance is good for. */
const FRESH_MS = 600_000
/** How long a signer without gas is passed over before somebody looks again. */
const EMPTY_MS = 30_000

export interface PurseSettings {
  readonly chain: Chain
  readonly network: Network
  readonly address: Address
  readonly now: () => number
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * What a signer has for gas, as far as is known without asking for it at every payment: the balance of the last look,
 * less the most that was promised since.
 */
export class Purse {
  readonly #settings: PurseSettings
  #balance = 0n
  #lookedAt: number | undefined
  #emptyAt: number | undefined
  #warnedAt: number | undefined

  constructor(settings: PurseSettings) {
    this.#settings = settings
  }

  /** There was nothing in it a moment ago. */
  get isEmpty(): boolean {
    return this.#emptyAt !== undefined && this.#settings.now() - this.#emptyAt < EMPTY_MS
  }

  /** Whether it pays for this; when the node does not say, yes: it has the last word on the transaction. */
  async holds(cost: bigint, fees: Fees): Promise<boolean> {
    const fresh = this.#lookedAt !== undefined && this.#settings.now() - this.#lookedAt < FRESH_MS
    if (fresh && this.#emptyAt === undefined && this.#balance >= cost) return true
    return this.#look(cost, fees)
  }

  async #look(cost: bigint, fees: Fees): Promise<boolean> {
    const { chain, network, address, now, report } = this.#settings
    const check = await checkGas(chain, address, fees)
    if (check.kind !== 'known') return true
    this.#balance = check.balance
    this.#lookedAt = now()
    this.#emptyAt = check.balance < cost ? now() : undefined
    const warning = gasWarning(network, address, check)
    if (warning !== undefined && now() - (this.#warnedAt ?? -Infinity) >= FRESH_MS) {
      this.#warnedAt = now()
      report(warning)
    }
    return check.balance >= cost
  }

  spend(cost: bigint): void {
    this.#balance -= cost
  }

  /** The node has said that there is not enough in it. */
  declareEmpty(): void {
    this.#emptyAt = this.#settings.now()
  }
}
