import type { Address } from '../../base/address.ts'
import type { Network } from '../../base/networks.ts'
import { GAS } from './account.ts'
import type { Chain, Fees } from './chain.ts'

const BALANCE_FRESH_MS = 600_000

/** How long a signer without gas is skipped before its balance is read again. */
const EMPTY_MS = 30_000

export type GasCheck =
  | {
      readonly kind: 'known'
      /** Wei. */
      readonly balance: bigint
      /** Lower bound of the settlements it can still pay for at these fees. */
      readonly payments: bigint
    }
  | { readonly kind: 'unreachable' }

/** Reads how many settlements a signer can still pay for. */
export async function checkGas(chain: Chain, signer: Address, { base, tip }: Fees): Promise<GasCheck> {
  const answer = await chain.balance(signer)
  if (answer.kind !== 'result') return { kind: 'unreachable' }
  // A node refuses a transaction that its sender could not pay for in the worst case.
  const each = GAS * (base * 2n + tip)
  return { kind: 'known', balance: answer.result, payments: answer.result / (each === 0n ? 1n : each) }
}

/** Number of payments below which a warning is given. */
export const FEW = 200n

/** A warning for an operator whose signer will soon run out of gas; undefined while it has enough. */
export function gasWarning(
  { title, id, coin }: Network,
  signer: Address,
  check: GasCheck,
): string | undefined {
  if (check.kind !== 'known' || check.payments >= FEW) return undefined
  const left = check.payments === 0n ? 'not enough for a payment' : `for ${check.payments} more payments`
  return `x402: ${title} (${id}): signer ${signer} has ${formatCoin(check.balance)} ${coin}, ${left}: send it more`
}

/** Formats wei as a billionth of the coin, rounded down. */
export function formatCoin(wei: bigint): string {
  const digits = (wei / 1_000_000_000n).toString().padStart(10, '0')
  const fraction = digits.slice(-9).replace(/0+$/, '')
  return fraction === '' ? digits.slice(0, -9) : `${digits.slice(0, -9)}.${fraction}`
}

interface GasBalanceSettings {
  readonly chain: Chain
  readonly network: Network
  readonly address: Address
  readonly now: () => number
  /** Receives a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * The gas balance of a signer without a request per payment: the last balance read, less the maximum cost of what
 * was sent since.
 */
export class GasBalance {
  readonly #settings: GasBalanceSettings
  #balance = 0n
  #lookedAt: number | undefined
  #emptyAt: number | undefined
  #warnedAt: number | undefined

  constructor(settings: GasBalanceSettings) {
    this.#settings = settings
  }

  /** Wei; undefined before the first read. */
  get known(): bigint | undefined {
    return this.#lookedAt === undefined ? undefined : this.#balance
  }

  /** Whether it was empty recently. */
  get isEmpty(): boolean {
    return this.#emptyAt !== undefined && this.#settings.now() - this.#emptyAt < EMPTY_MS
  }

  /** Whether it can pay this cost; true when the node does not answer, since the node decides anyway. */
  async covers(cost: bigint, fees: Fees): Promise<boolean> {
    const fresh = this.#lookedAt !== undefined && this.#settings.now() - this.#lookedAt < BALANCE_FRESH_MS
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
    if (warning !== undefined && now() - (this.#warnedAt ?? -Infinity) >= BALANCE_FRESH_MS) {
      this.#warnedAt = now()
      report(warning)
    }
    return check.balance >= cost
  }

  spend(cost: bigint): void {
    this.#balance -= cost
  }

  /** Records that the node found the balance too small. */
  declareEmpty(): void {
    this.#emptyAt = this.#settings.now()
  }
}
