import { pad, toEventSelector } from 'viem/utils'
import { isAddress, toChecksum, type Address } from '../../address.ts'
import type { Log, LogFilter } from './chain.ts'

const TRANSFER = toEventSelector('Transfer(address,address,uint256)')

/** Money that has moved, as a token tells it (ERC-20). */
export interface Transfer {
  readonly from: Address
  readonly to: Address
  /** Atomic units. */
  readonly amount: bigint
}

export function transfersTo(token: Address, payees: readonly Address[]): LogFilter {
  return { address: token, topics: [TRANSFER, null, payees.map(addressTopic)] }
}

export function readTransfer({ topics, data }: Log): Transfer | undefined {
  const [selector, from, to] = topics
  if (selector !== TRANSFER || topics.length !== 3 || !/^0x[0-9a-f]{64}$/i.test(data)) return undefined
  const [payer, payee] = [topicAddress(from), topicAddress(to)]
  return payer === undefined || payee === undefined
    ? undefined
    : { from: payer, to: payee, amount: BigInt(data) }
}

export function addressTopic(address: Address): `0x${string}` {
  return pad(address, { size: 32 })
}

export function topicAddress(topic: string | undefined): Address | undefined {
  const address = `0x${topic?.slice(26) ?? ''}`
  return isAddress(address) ? toChecksum(address) : undefined
}

/** Whether a text can be the name of a transaction: a facilitator’s word for one may be anything. */
export function isTransactionHash(text: string | undefined): text is `0x${string}` {
  return text !== undefined && /^0x[0-9a-fA-F]{64}$/.test(text)
}
