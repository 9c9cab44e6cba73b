import type { Address } from '../../address.ts'
import type { Limits } from '../../networks.ts'
import type { Chain } from '../evm/chain.ts'
import type { Signers } from './signers.ts'

/** What it takes to see what became of a payment on one network. */
export interface Lookout {
  readonly networkId: string
  readonly chain: Chain
  readonly limits: Limits
}

/** What it takes to move money on one network with our own hands. */
export interface Bench extends Lookout {
  readonly token: Address
  readonly signers: Signers
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}
