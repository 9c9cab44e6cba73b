import { type Address, sameAddress, isAddress, toChecksum } from '../../base/address.ts'
import { word } from './abi.ts'
import type { LogFilter, Log } from './event-log.ts'

/** keccak256 of `Transfer(address,address,uint256)` (ERC-20). */
export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** A transfer, from the event of a token. */
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

/** Whether a log is this transfer. Compares encoded topics: decoding them would hash every address. */
export function isTransfer(
  { address, topics, data }: Log,
  { token, from, to, amount }: Transfer & { readonly token: Address },
): boolean {
  const expected = [TRANSFER, addressTopic(from), addressTopic(to), `0x${word(amount)}`]
  return sameAddress(address, token) && [...topics, data].join(' ').toLowerCase() === expected.join(' ')
}

export function addressTopic(address: Address): `0x${string}` {
  return `0x${word(address)}`
}

export function topicAddress(topic: string | undefined): Address | undefined {
  const address = `0x${topic?.slice(26) ?? ''}`
  return isAddress(address) ? toChecksum(address) : undefined
}
