import type { Account } from './account.ts'
import { type Broadcast, broadcast } from './broadcast.ts'
import type { TransactionRequest, Signed } from './transaction.ts'
import type { Chain } from './chain.ts'
import type { Clock } from '../../base/poll.ts'
import type { Network } from '../../base/networks.ts'

/** A transfer of nothing to the account itself, which uses up a nonce. */
export function fillerOf({
  address,
}: Pick<Account, 'address'>): Pick<TransactionRequest, 'to' | 'data' | 'gas'> {
  return { to: address, data: '0x', gas: 21_000n }
}

interface Sending extends Clock {
  readonly account: Account
  readonly chain: Chain
  readonly network: Network
}

/**
 * Transactions that the node has taken above a nonce that it has refused would wait for the next payment: a transfer of
 * nothing uses the refused nonce. A nonce with an unknown outcome stays as it is: the next transaction takes it, unless
 * the chain has counted this one by then. Resolves to the nonces that are taken now.
 */
export async function fillGaps(
  { account, chain, network, ...clock }: Sending,
  signed: readonly Signed[],
  outcomes: readonly Broadcast[],
): Promise<readonly number[]> {
  const highest = outcomes.lastIndexOf('taken')
  const filled: number[] = []
  for (const [place, { price, transaction }] of signed.entries()) {
    const outcome = outcomes[place]
    if (place > highest || (outcome !== 'refused' && outcome !== 'unfunded')) continue
    const { nonce } = transaction
    const filler = { ...fillerOf(account), chainId: network.chainId, nonce, ...price }
    if ((await broadcast(chain, account.sign(filler), clock)) === 'taken') filled.push(nonce)
  }
  return filled
}
