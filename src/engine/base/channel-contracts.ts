import type { Address } from './address.ts'

/** The contract of all channels, at the same address on every network (x402, scheme batch-settlement on EVM). */
export const CHANNELS: Address = '0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003'

/** It takes the money of a deposit by EIP-3009, and hands it to `CHANNELS`. */
export const DEPOSIT_COLLECTOR: Address = '0x4020806089470a89826cB9fB1f4059150b550004'

/** It takes the money of a deposit by Permit2. */
export const PERMIT_COLLECTOR: Address = '0x4020425FAf3B746C082C2f942b4E5159887B0005'

/** Seconds between the start of a withdrawal and its end that the contract accepts. */
export const WITHDRAW_DELAY_S = { least: 900, most: 2_592_000 } as const
