import type { Address } from '../../address.ts'
import type { Network } from '../../networks.ts'
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
