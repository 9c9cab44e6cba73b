import type { Address } from '../../address.ts'
import type { Chain } from './chain.ts'
import type { Signer } from './signer.ts'

/** What it takes to move money on one network. */
export interface Settler {
  readonly networkId: string
  readonly token: Address
  readonly chain: Chain
  readonly signer: Signer
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}
