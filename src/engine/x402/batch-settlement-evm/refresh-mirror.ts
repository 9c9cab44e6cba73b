import type { Refusal } from '../../base/errors.ts'
import type { ChannelId } from '../../base/channel-config.ts'
import { readChannel } from './channel-calls.ts'
import { updateMirror, readMirror, type ChannelMirror } from './channel-mirror.ts'
import { isFresh, type ChannelNetwork } from './channel-network.ts'

export const CANNOT_READ: Refusal = {
  code: 'chain_unavailable',
  detail: 'the network cannot be reached now; nothing was charged',
  retryAfter: 10,
}

/** Reads a channel from the chain and keeps it; undefined when the node does not answer. */
export async function refresh(on: ChannelNetwork, id: ChannelId): Promise<ChannelMirror | undefined> {
  const { chain } = await on.open()
  const { network, ledger } = on
  const { state, mirror } = await readMirror(ledger, network.id, id)
  const found = await readChannel(chain, id, on.clock.now())
  if (found === undefined) return undefined
  const read = mirror?.claimedAt === undefined ? found : { ...found, claimedAt: mirror.claimedAt }
  if (await ledger.commit([], [{ previous: state, next: JSON.stringify(read) }])) return read
  // Another process has changed it meanwhile: what it knows may be newer.
  const { mirror: newer } = await readMirror(ledger, network.id, id)
  return newer ?? mirror ?? read
}

/** What the chain has of a channel: without a node while that is fresh; undefined when the node does not answer. */
export async function mirrored(on: ChannelNetwork, id: ChannelId): Promise<ChannelMirror | undefined> {
  const { mirror } = await readMirror(on.ledger, on.network.id, id)
  return mirror !== undefined && (await isFresh(on, mirror.readAt)) ? mirror : refresh(on, id)
}

/** A deposit or a claim of ours was mined: no node is asked for what its events say. */
export async function noteMined(
  on: ChannelNetwork,
  id: ChannelId,
  change: Partial<Pick<ChannelMirror, 'balance' | 'claimed' | 'readAt' | 'claimedAt'>>,
): Promise<void> {
  await updateMirror(on.ledger, on.network.id, id, (mirror) => mirror && { ...mirror, ...change })
}
