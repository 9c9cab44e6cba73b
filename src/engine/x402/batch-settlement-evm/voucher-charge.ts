import type { ChannelConfig } from '../../base/channel-config.ts'
import { chargedOf, type ChannelAccount } from './channel-account.ts'
import type { Voucher } from './channel-payload.ts'
import type { ChannelStanding } from './voucher-fit.ts'

interface VoucherCharge {
  readonly config: ChannelConfig
  readonly voucher: Voucher
  /** Atomic units: what the call costs, at most what the voucher adds. */
  readonly charged: bigint
  /** The call that was bought, and the key of its record. */
  readonly bought: { readonly call: string; readonly key: string }
  /** Whether the payer has signed a deposit with it. */
  readonly hasDeposit: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** A channel after one more charge. */
export function accountAfter(
  { account, mirror }: ChannelStanding,
  { config, voucher, charged, bought, hasDeposit, now }: VoucherCharge,
): ChannelAccount {
  const before = chargedOf(account, mirror)
  const total = before + charged
  const claimed = BigInt(mirror.claimed)
  const ceiling = voucher.ceiling.toString()
  // A voucher is kept for what was charged, and no further one: claims make it public, and it pays for a call.
  const isCovered = total <= BigInt(account?.voucher?.ceiling ?? claimed)
  const { setAside: _setAside, unclaimedSince, ...kept } = account ?? {}
  const since = before > claimed ? unclaimedSince : undefined
  return {
    ...kept,
    config,
    charged: total.toString(),
    ...(isCovered ? {} : { voucher: { ceiling, signature: voucher.signature } }),
    charges: (account?.charges ?? 0) + 1,
    last: { ceiling, ...bought },
    isProven: account?.isProven === true || hasDeposit,
    ...(total > claimed ? { unclaimedSince: since ?? now } : {}),
  }
}
