import type { Chain, Fees } from '../evm/chain.ts'

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

const FRESH_MS = 4_000

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
    if (this.#asked === undefined || this.#now() - this.#asked.at >= FRESH_MS)
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
