import { keccak256 } from 'js-sha3'
import type { Log } from '../../chains/evm/event-log.ts'
import { isChannelId } from './channel-account.ts'
import type { ChannelId } from '../../base/channel-config.ts'

function topic(signature: string): `0x${string}` {
  return `0x${keccak256(signature)}`
}

export const DEPOSITED = topic('Deposited(bytes32,address,uint128,uint128)')
const WITHDRAW_INITIATED = topic('WithdrawInitiated(bytes32,uint128,uint40)')
const WITHDRAW_FINALIZED = topic('WithdrawFinalized(bytes32,address,uint128)')
export const REFUNDED = topic('Refunded(bytes32,address,uint128)')

/** Events after which a channel holds less than it did, or soon will. */
export const SHRINKING = [WITHDRAW_INITIATED, WITHDRAW_FINALIZED, REFUNDED] as const

/** The channel of an event. */
export function channelOf({ topics }: Pick<Log, 'topics'>): ChannelId | undefined {
  const id = topics[1]?.toLowerCase()
  return isChannelId(id) ? id : undefined
}
