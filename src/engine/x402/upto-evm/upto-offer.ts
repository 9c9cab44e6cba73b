import type { Address } from '../../base/address.ts'
import { offerOf, type AcceptedNetwork } from '../exact-evm/accepted-network.ts'
import type { NetworkOffer, PriceKind } from '../requirements.ts'
import { SPONSORING } from '../gas-sponsoring.ts'
import type { PermitSettlement } from './permit-settlement.ts'

/** What scheme upto offers on a network, to be settled by one account. */
export function uptoOffer(
  network: AcceptedNetwork,
  facilitatorAddress: Address | '',
  prices: readonly PriceKind[],
  approvals: PermitSettlement['approvals'],
): NetworkOffer {
  const { extra, ...offer } = offerOf(network)
  return {
    ...offer,
    scheme: 'upto',
    prices,
    extra: { ...extra, facilitatorAddress },
    ...(approvals === 'sent along' && { extensions: SPONSORING }),
  }
}
