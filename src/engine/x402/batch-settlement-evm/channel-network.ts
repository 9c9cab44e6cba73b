import type { Address } from '../../base/address.ts'
import type { Limits, Network } from '../../base/networks.ts'
import type { Clock } from '../../base/poll.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { SettlementContext } from '../exact-evm/settlement-context.ts'
import type { ChannelMirror } from './channel-mirror.ts'

/** What the catalog says of channels. Amounts are in atomic units, times in milliseconds. */
export interface ChannelTerms {
  readonly withdrawDelay: number
  /** The least that a deposit has. */
  readonly leastDeposit: bigint
  /** How offers ask for deposits. */
  readonly depositBy: 'eip3009' | 'permit2'
  /** Money of a channel that is claimed at once. */
  readonly claimAfter: bigint
  /** How long money may be unclaimed. */
  readonly claimEvery: number
  /** The most that a channel may owe. */
  readonly mostUnclaimed: bigint
}

/** A network whose channels are used here. */
export interface ChannelNetwork {
  readonly network: Network
  /** EIP-55. */
  readonly payTo: Address
  readonly limits: Limits
  readonly terms: ChannelTerms
  /** Keys that sign claims and refunds by the address that channels name: the present one first. */
  readonly authorizers: ReadonlyMap<Address, `0x${string}`>
  readonly ledger: Ledger
  readonly clock: Clock
  /** Node and gas accounts, which are opened at the first use. */
  readonly open: () => Promise<Omit<SettlementContext, 'limits'>>
  /** From when to when the chain was watched without a break, in milliseconds since the epoch. */
  readonly watched: () => Promise<{ readonly since: number; readonly at: number }>
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** What a channel may owe: as much as its first deposit, and the more the more of it was claimed. */
export function creditOf(
  { terms }: Pick<ChannelNetwork, 'terms'>,
  { claimed }: Pick<ChannelMirror, 'claimed'>,
): bigint {
  const earned = terms.leastDeposit + BigInt(claimed)
  return earned < terms.mostUnclaimed ? earned : terms.mostUnclaimed
}

/** A mirror counts as right while the chain was watched this recently; much less than the shortest withdrawal. */
export const FRESH_MS = 300_000

/** Whether what is known of a channel may be relied on without asking a node. */
export async function isFresh(
  { watched, clock: { now } }: Pick<ChannelNetwork, 'watched' | 'clock'>,
  readAt: number,
): Promise<boolean> {
  if (readAt === 0) return false
  if (now() - readAt < FRESH_MS) return true
  const { since, at } = await watched()
  return readAt >= since && now() - at < FRESH_MS
}
