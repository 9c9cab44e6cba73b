import { mpp } from './mpp.ts'
import type { Offer, PayingProtocol, Reply } from './paying-protocol.ts'
import { x402 } from './x402.ts'

/** Every way to pay that is known here, the preferred one first. */
export const PROTOCOLS: readonly PayingProtocol[] = [x402, mpp]

/** The first offer of a 402 that can be signed, in order of preference. */
export function findOffer(reply: Reply, protocols: readonly PayingProtocol[]): Offer | undefined {
  for (const protocol of protocols) {
    const offer = protocol.readOffer(reply)
    if (offer !== undefined) return offer
  }
  return undefined
}
