import { mpp } from './mpp.ts'
import type { AccountKind, Offer, PayingProtocol, Reply } from './paying-protocol.ts'
import { x402 } from './x402.ts'

/** Every way to pay that is known here, the preferred one first. */
export const PROTOCOLS: readonly PayingProtocol[] = [x402, mpp]

/**
 * The first offer of a 402 that one of these kinds of account can pay, in order of preference; where none can, the first
 * one that is understood.
 */
export function findOffer(
  reply: Reply,
  protocols: readonly PayingProtocol[],
  accounts: readonly AccountKind[],
): Offer | undefined {
  const offers = protocols.flatMap((protocol) => protocol.readOffers(reply))
  return offers.find(({ account }) => accounts.includes(account)) ?? offers[0]
}
