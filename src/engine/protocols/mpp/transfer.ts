import { sameAddress } from '../../address.ts'
import type { Log } from '../../chains/evm/rpc.ts'

/** Money that has to move for a payment to be settled. */
export interface Transfer {
  readonly token: string
  readonly from: string
  readonly to: string
  /** Atomic units. */
  readonly amount: bigint
}

/** keccak256 of `Transfer(address,address,uint256)`. */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const WORD = /^0x[0-9a-f]{64}$/i

/** Whether these logs show it. */
export function showsTransfer(logs: readonly Log[], { token, from, to, amount }: Transfer): boolean {
  return logs.some(
    ({ address, topics: [event, sender = '', receiver = ''], data }) =>
      sameAddress(address, token) &&
      event?.toLowerCase() === TRANSFER &&
      isWordOf(sender, from) &&
      isWordOf(receiver, to) &&
      WORD.test(data) &&
      BigInt(data) === amount,
  )
}

/** An address as an event topic. */
function isWordOf(topic: string, address: string): boolean {
  return WORD.test(topic) && sameAddress(`0x${topic.slice(-40)}`, address)
}
