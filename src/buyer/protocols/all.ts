import { mpp } from './mpp.ts'
import type { JsonObject } from '../../engine/base/json.ts'
import type { Channels, Noted } from '../channels/channels.ts'
import type { AccountKind, Offer, PayingProtocol, ProtocolName, Reply } from './paying-protocol.ts'
import { x402 } from './x402.ts'

/** Every way to pay that is known here, the preferred one first. */
export const PROTOCOLS: readonly PayingProtocol[] = [x402, mpp]

/** The first offer of a 402 that can be signed, in order of preference. */
export function findOffer(
  reply: Reply,
  protocols: readonly PayingProtocol[],
  accounts: readonly AccountKind[],
): Offer | undefined {
  return findOffers(reply, protocols, accounts)[0]
}

/**
 * The offers of a 402 that one of these kinds of account can pay, in order of preference; where none can, all that are
 * understood.
 */
export function findOffers(
  reply: Reply,
  protocols: readonly PayingProtocol[],
  accounts: readonly AccountKind[],
): readonly Offer[] {
  const offers = protocols.flatMap((protocol) => protocol.readOffers(reply))
  const payable = offers.filter(({ account }) => accounts.includes(account))
  return payable.length === 0 ? offers : payable
}

/** Keeps what an answer to a payment says of its channel. */
export async function noteAnswer(
  channels: Channels | undefined,
  { protocol, meta }: { readonly protocol: ProtocolName; readonly meta: JsonObject },
  reply: Reply | undefined,
): Promise<Noted> {
  const note = PROTOCOLS.find(({ name }) => name === protocol)?.note
  if (note === undefined || channels === undefined || reply === undefined) return { kind: 'noted' }
  return note(channels, meta, reply)
}
