import type { Refusal } from '../../base/errors.ts'
import type { ChannelId } from '../../base/channel-config.ts'
import { chargedOf, reserved, type ChannelAccount } from './channel-account.ts'
import { usable, type ChannelMirror } from './channel-mirror.ts'
import { corrective } from './wire.ts'

/** A voucher as it came, and its terms; in atomic units. */
export interface SentVoucher {
  /** CAIP-2. */
  readonly network: string
  readonly id: ChannelId
  readonly ceiling: bigint
  /** The most that its call may cost. */
  readonly amount: bigint
  /** What a deposit has at least. */
  readonly leastDeposit: bigint
}

/** Where a channel stands: what was bought through it, and what the chain holds. */
export interface ChannelStanding {
  /** Undefined when nothing was ever bought. */
  readonly account: ChannelAccount | undefined
  readonly mirror: ChannelMirror
}

/** Why the voucher does not continue the channel where it stands. */
export function misfitOf(voucher: SentVoucher, { account, mirror }: ChannelStanding): Refusal | undefined {
  const { network, id, ceiling, amount } = voucher
  const charged = chargedOf(account, mirror)
  if (charged + amount === ceiling) return undefined
  const isBelow = ceiling <= BigInt(mirror.claimed)
  return corrective(network, id, account, mirror, {
    code: isBelow ? 'invalid_batch_settlement_evm_cumulative_below_claimed' : MISMATCH,
    detail: `the channel was charged ${charged} so far; a voucher for this call has the ceiling ${charged + amount}, not ${ceiling}`,
  })
}

/** Why the channel does not hold what the voucher promises. `added`: what a deposit brings, in atomic units. */
export function shortfallOf(
  { network, id, ceiling, leastDeposit }: SentVoucher,
  { account, mirror }: ChannelStanding,
  added: bigint,
): Refusal | undefined {
  const held = usable(mirror) - reserved(account)
  if (ceiling <= held + added) return undefined
  return corrective(network, id, account, mirror, {
    // Clients that are told of a mismatch read the balance and top the channel up; told of anything else, they give up.
    code: MISMATCH,
    detail: `the channel holds ${held}, which is less than the ceiling ${ceiling}: add a deposit`,
    leastDeposit: ceiling - held > leastDeposit ? ceiling - held : undefined,
  })
}

/** Clients sign again when they are told where the channel stands; told that it is busy, they give up. */
export function busyAt({ network, id }: SentVoucher, { account, mirror }: ChannelStanding): Refusal {
  return corrective(network, id, account, mirror, {
    code: MISMATCH,
    detail: 'another call of this channel is being worked on; nothing was charged for this one',
  })
}

const MISMATCH = 'invalid_batch_settlement_evm_cumulative_amount_mismatch'
