import { isAddress } from '../../address.ts'
import type { Chain } from '../../chains/evm/rpc.ts'
import type { Refusal } from '../protocol.ts'

/** One call of a payer, by itself. */
export interface Call {
  readonly from: string
  readonly to: string
  readonly data: `0x${string}`
}

/**
 * Whether the token would carry the transfer out now. mppx has the node try the whole transaction, fee and validity
 * included, but not every node carries out the calls inside when it is only asked: anvil does not.
 */
export async function tryTransfer(chain: Chain, { from, to, data }: Call): Promise<Refusal | undefined> {
  if (!isAddress(from) || !isAddress(to)) throw new Error('a call has addresses')
  const answer = await chain.call(to, data, { from })
  if (answer.kind === 'result') return undefined
  if (answer.kind === 'refused' && (answer.data !== undefined || /revert/i.test(answer.message))) {
    const detail = 'the token would not carry the transfer out: the payer holds less of it, or it is paused'
    return { code: 'verification_failed', detail }
  }
  return UNAVAILABLE
}

export const UNAVAILABLE: Refusal = {
  code: 'chain_unavailable',
  detail: 'the payment network cannot be reached now',
}
