import type { Fees, Chain } from './chain.ts'

/** The offered price of a unit of gas, in wei. */
export interface Bid {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/**
 * Offers up to twice the base fee, so that the bid outlives several full blocks, capped at the limit; undefined when
 * the current price is above the limit.
 */
export function bid({ base, tip }: Fees, limit: bigint): Bid | undefined {
  if (base + tip > limit) return undefined
  const roomy = base * 2n + tip
  return { maxFeePerGas: roomy < limit ? roomy : limit, maxPriorityFeePerGas: tip }
}

/**
 * A bid that replaces another with the same nonce: nodes require 10 or 12.5 % more of both numbers. Undefined when
 * that or the current price is above the limit.
 */
export function raise(previous: Bid, fees: Fees, limit: bigint): Bid | undefined {
  const now = bid(fees, limit)
  if (now === undefined) return undefined
  const maxFeePerGas = larger(now.maxFeePerGas, anEighthMore(previous.maxFeePerGas))
  const maxPriorityFeePerGas = larger(now.maxPriorityFeePerGas, anEighthMore(previous.maxPriorityFeePerGas))
  if (maxFeePerGas > limit || maxPriorityFeePerGas > maxFeePerGas) return undefined
  return { maxFeePerGas, maxPriorityFeePerGas }
}

/** What a unit of gas of a revert costs, when the base fee rises once before it is mined. */
export function priceOfRevert({ base, tip }: Fees): bigint {
  return base + base / 8n + tip
}

function anEighthMore(wei: bigint): bigint {
  return wei + wei / 8n + 1n
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

/** How long fees and balances of the node are cached. */
const FEES_FRESH_MS = 4_000

/** The fees of a network, requested every few seconds at most. */
export class FeeOracle {
  readonly #chain: Chain
  readonly #now: () => number
  #asked: { readonly fees: Promise<Fees | undefined>; readonly at: number } | undefined
  #last: Fees | undefined

  constructor(chain: Chain, now: () => number) {
    this.#chain = chain
    this.#now = now
  }

  /** The fees that were read last, of any age; undefined before the first answer. */
  get last(): Fees | undefined {
    return this.#last
  }

  /** Undefined when the node does not answer. */
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
    if (answer.kind !== 'result') return undefined
    this.#last = answer.result
    return answer.result
  }
}
