import type { Network } from '../../base/networks.ts'
import type { NetworkOffer } from '../requirements.ts'

/** A network on which payments are accepted. */
export interface AcceptedNetwork {
  readonly network: Network
  /** EIP-55. */
  readonly payTo: string
  /** Seconds a signed payment is valid. */
  readonly timeoutSeconds: number
  /** Whether offers say that the money is worthless. */
  readonly testnet: boolean
}

/** What scheme exact offers on it. */
export function offerOf({ network, payTo, timeoutSeconds, testnet }: AcceptedNetwork): NetworkOffer {
  const { address: asset, decimals, name, version } = network.token
  return {
    scheme: 'exact',
    prices: ['fixed'],
    network: network.id,
    asset,
    decimals,
    payTo,
    timeoutSeconds,
    extra: { name, version, ...(testnet ? { testnet } : {}) },
  }
}
