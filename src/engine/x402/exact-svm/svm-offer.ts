import type { SvmNetwork } from '../../base/networks.ts'
import { SVM_LIFETIME_MS, SVM_LONGEST_WORK_MS } from '../../base/money-times.ts'
import type { NetworkOffer } from '../requirements.ts'

/** A Solana network on which payments are accepted. */
export interface AcceptedSvmNetwork {
  readonly network: SvmNetwork
  /** The owner of the token account that receives the money. */
  readonly payTo: string
  /** Seconds a signed payment is valid, as the catalog has it. */
  readonly timeoutSeconds: number
  /** Whether offers say that the money is worthless. */
  readonly testnet: boolean
  /** Pays for the transactions: an account of ours, or of a facilitator. */
  readonly feePayer: string
}

/** What scheme exact offers on it. */
export function svmOfferOf({
  network,
  payTo,
  timeoutSeconds,
  testnet,
  feePayer,
}: AcceptedSvmNetwork): NetworkOffer {
  const { address: asset, decimals } = network.token
  return {
    scheme: 'exact',
    prices: ['fixed'],
    network: network.id,
    asset,
    decimals,
    payTo,
    // A transaction does not live longer.
    timeoutSeconds: Math.min(timeoutSeconds, SVM_LIFETIME_MS / 1_000),
    extra: { feePayer, ...(testnet ? { testnet } : {}) },
    longestWork: SVM_LONGEST_WORK_MS,
  }
}
