import type { Address } from '../../base/address.ts'
import { offerOf, type AcceptedNetwork } from '../exact-evm/accepted-network.ts'
import type { NetworkOffer, PriceKind } from '../requirements.ts'
import { GAS_SPONSORING } from '../../base/permit2.ts'
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
    ...(approvals === 'sent along' && { extensions: { [GAS_SPONSORING]: SPONSORING } }),
  }
}

/** Every byte is sent with each 402: the specification has the schema. */
const SPONSORING = {
  info: { description: 'An EIP-2612 approval of Permit2 is sent with the payment.', version: '1' },
  schema: {},
}
