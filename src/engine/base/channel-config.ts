import type { Address } from './address.ts'

/** What a channel is made of, and its id follows from; nothing of it ever changes. */
export interface ChannelConfig {
  readonly payer: Address
  /** Whose signature a voucher needs. */
  readonly payerAuthorizer: Address
  readonly receiver: Address
  /** Who signs claims and refunds. */
  readonly receiverAuthorizer: Address
  readonly token: Address
  /** Seconds. */
  readonly withdrawDelay: number
  /** 32 bytes. */
  readonly salt: `0x${string}`
}

/** 32 bytes in lower case. */
export type ChannelId = `0x${string}`
