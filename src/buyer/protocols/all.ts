import { mpp } from './mpp.ts'
import type { JsonObject } from '../../engine/base/json.ts'
import type { Channels, Noted } from '../channels/channels.ts'
import type { Offer, PayingProtocol, ProtocolName, Reply } from './paying-protocol.ts'
import { x402 } from './x402.ts'

/** Every way to pay that is known here, the preferred one first. */
export const PROTOCOLS: readonly PayingProtocol[] = [x402, mpp]

/** The first offer of a 402 that can be signed, in order of preference. */
export function findOffer(reply: Reply, protocols: readonly PayingProtocol[]): Offer | undefined {
  return findOffers(reply, protocols)[0]
}

/** The offer of each protocol that can be signed. */
export function findOffers(reply: Reply, protocols: readonly PayingProtocol[]): readonly Offer[] {
  return protocols.flatMap((protocol) => protocol.readOffer(reply) ?? [])
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
