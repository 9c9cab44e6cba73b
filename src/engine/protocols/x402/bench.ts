import type { Address } from '../../address.ts'
import type { Chain } from '../evm/chain.ts'
import type { Signer } from './signer.ts'

/** What it takes to move money on one network with our own hands. */
export interface Bench {
  readonly networkId: string
  readonly token: Address
  readonly chain: Chain
  readonly signer: Signer
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}
