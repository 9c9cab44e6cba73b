import type { Address } from '../../address.ts'
import type { Network } from '../../networks.ts'
import type { Chain, Fees } from './rpc.ts'

/** Enough for a token transfer by signature on every network of the table; contract wallets verify in code of theirs. */
export const GAS = 200_000n
export const GAS_CONTRACT_WALLET = 600_000n

/** What is offered for each unit of gas, in wei. */
export interface Bid {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/**
 * Room for twice the base fee, so that the offer outlives several full blocks, up to the limit; undefined when the
 * price of now is above the limit.
 */
export function bid({ base, tip }: Fees, limit: bigint): Bid | undefined {
  if (base + tip > limit) return undefined
  const roomy = base * 2n + tip
  return { maxFeePerGas: roomy < limit ? roomy : limit, maxPriorityFeePerGas: tip }
}

/**
 * A bid that takes the place of another one with the same nonce: nodes ask for 10 or 12.5 % more of both numbers.
 * Undefined when that, or the price of now, is above the limit.
 */
export function raise(previous: Bid, fees: Fees, limit: bigint): Bid | undefined {
  const now = bid(fees, limit)
  if (now === undefined) return undefined
  const maxFeePerGas = larger(now.maxFeePerGas, anEighthMore(previous.maxFeePerGas))
  const maxPriorityFeePerGas = larger(now.maxPriorityFeePerGas, anEighthMore(previous.maxPriorityFeePerGas))
  if (maxFeePerGas > limit || maxPriorityFeePerGas > maxFeePerGas) return undefined
  return { maxFeePerGas, maxPriorityFeePerGas }
}

function anEighthMore(wei: bigint): bigint {
  return wei + wei / 8n + 1n
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

/** How long what the node says of fees, and of a balance, is good for. */
const FEES_FRESH_MS = 4_000
const BALANCE_FRESH_MS = 600_000
/** How long a signer without gas is passed over before its balance is read again. */
const EMPTY_MS = 30_000

/** The fees of a network, asked for every few seconds at the most. */
export class FeeOracle {
  readonly #chain: Chain
  readonly #now: () => number
  #asked: { readonly fees: Promise<Fees | undefined>; readonly at: number } | undefined

  constructor(chain: Chain, now: () => number) {
    this.#chain = chain
    this.#now = now
  }

  /** Undefined when the node does not say. */
  async current(): Promise<Fees | undefined> {
    if (this.#asked === undefined || this.#now() - this.#asked.at >= FEES_FRESH_MS)
      this.#asked = { fees: this.#ask(), at: this.#now() }
    const asked = this.#asked
    const fees = await asked.fees
    if (fees === undefined && this.#asked === asked) this.#asked = undefined
    return fees
  }

  async #ask(): Promise<Fees | undefined> {
    const answer = await this.#chain.fees()
    return answer.kind === 'result' ? answer.result : undefined
  }
}

export type GasCheck =
  | {
      readonly kind: 'known'
      /** Wei. */
      readonly balance: bigint
      /** How many more settlements it pays for at these fees, at the least. */
      readonly payments: bigint
    }
  | { readonly kind: 'unreachable' }

/** Looks how long a signer can go on. */
export async function checkGas(chain: Chain, signer: Address, { base, tip }: Fees): Promise<GasCheck> {
  const answer = await chain.balance(signer)
  if (answer.kind !== 'result') return { kind: 'unreachable' }
  // A node does not take a transaction that its sender could not pay for in the worst case.
  const each = GAS * (base * 2n + tip)
  return { kind: 'known', balance: answer.result, payments: answer.result / (each === 0n ? 1n : each) }
}

/** Fewer payments than this are worth a warning. */
export const FEW = 200n

/** A line for the operator whose signer will soon be unable to settle; undefined while there is no need. */
export function gasWarning(
  { title, id, coin }: Network,
  signer: Address,
  check: GasCheck,
): string | undefined {
  if (check.kind !== 'known' || check.payments >= FEW) return undefined
  const left = check.payments === 0n ? 'not enough for a payment' : `for ${check.payments} more payments`
  return `x402: ${title} (${id}): signer ${signer} has ${formatCoin(check.balance)} ${coin}, ${left}: send it more`
}

/** To a billionth of the coin, rounded down. */
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
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/**
 * What a signer has for gas, as far as is known without asking for it at every payment: the balance of the last look,
 * less the most that was promised since.
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

  /** Wei; undefined before the first look. */
  get known(): bigint | undefined {
    return this.#lookedAt === undefined ? undefined : this.#balance
  }

  /** It was empty a moment ago. */
  get isEmpty(): boolean {
    return this.#emptyAt !== undefined && this.#settings.now() - this.#emptyAt < EMPTY_MS
  }

  /** Whether it pays for this; when the node does not say, yes: it has the last word on the transaction. */
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

  /** The node has said that there is not enough in it. */
  declareEmpty(): void {
    this.#emptyAt = this.#settings.now()
  }
}
