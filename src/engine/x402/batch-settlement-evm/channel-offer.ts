import type { Address } from '../../base/address.ts'
import { offerOf, type AcceptedNetwork } from '../exact-evm/accepted-network.ts'
import { SPONSORING } from '../gas-sponsoring.ts'
import type { NetworkOffer } from '../requirements.ts'
import type { ChannelTerms } from './channel-network.ts'
import { depositSeconds } from './deposit.ts'
import { SCHEME } from './wire.ts'

/** What scheme batch-settlement offers on a network, to be claimed with the key of `receiverAuthorizer`. */
export function channelOffer(
  network: AcceptedNetwork,
  receiverAuthorizer: Address | '',
  {
    withdrawDelay,
    leastDeposit,
    depositBy,
  }: Pick<ChannelTerms, 'withdrawDelay' | 'leastDeposit' | 'depositBy'>,
): NetworkOffer {
  const { extra, timeoutSeconds, ...offer } = offerOf(network)
  return {
    ...offer,
    timeoutSeconds: depositSeconds(timeoutSeconds),
    scheme: SCHEME,
    prices: ['fixed', 'metered'],
    extra: {
      ...extra,
      receiverAuthorizer,
      withdrawDelay: withdrawDelay / 1000,
      minDeposit: leastDeposit.toString(),
      // Clients take EIP-3009 where it is not said.
      ...(depositBy === 'permit2' && { assetTransferMethod: depositBy }),
    },
    ...(depositBy === 'permit2' && { extensions: SPONSORING }),
  }
}
