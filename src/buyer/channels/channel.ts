import type { Address } from '../../engine/base/address.ts'
import type { ChannelConfig } from '../../engine/base/channel-config.ts'
import type { Network } from '../../engine/base/networks.ts'

/** What scheme `batch-settlement` adds to the terms of an offer. */
export interface ChannelTerms {
  readonly receiverAuthorizer: Address
  /** Seconds. */
  readonly withdrawDelay: number
  /** Smallest deposit, in atomic units. */
  readonly leastDeposit: bigint
}

/** A channel as its payer keeps it. Amounts are in atomic units. */
export interface ChannelState {
  /** What was charged in all, as the shop has said; never more than what was signed. */
  readonly charged: bigint
  /** The highest ceiling that was signed: whatever the shop says, it can take no more. */
  readonly signed: bigint
  /** What the channel holds, claimed money included, as far as is known. */
  readonly balance: bigint
  /** Every deposit that was signed, less what was given back. */
  readonly deposited: bigint
  /** A deposit of which nobody knows whether it was taken: no other one is signed until it cannot be any more. */
  readonly pending?: SignedDeposit
}

/** A deposit as the collector takes it. */
export interface SignedDeposit {
  readonly amount: bigint
  /** Seconds since the epoch. */
  readonly validBefore: bigint
  /** 32 bytes. */
  readonly salt: `0x${string}`
  readonly signature: `0x${string}`
}

export const NEW_CHANNEL: ChannelState = { charged: 0n, signed: 0n, balance: 0n, deposited: 0n }

/** The one channel of a payer for the offers with these terms. */
export function configOf(
  payer: Address,
  { network, payTo }: { readonly network: Network; readonly payTo: Address },
  { receiverAuthorizer, withdrawDelay }: ChannelTerms,
): ChannelConfig {
  return {
    payer,
    payerAuthorizer: payer,
    receiver: payTo,
    receiverAuthorizer,
    token: network.token.address,
    withdrawDelay,
    salt: `0x${'0'.repeat(64)}`,
  }
}
