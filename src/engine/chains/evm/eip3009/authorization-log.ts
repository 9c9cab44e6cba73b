import { keccak256 } from 'js-sha3'
import { sameAddress } from '../../../base/address.ts'
import { word } from '../abi.ts'
import type { Log } from '../event-log.ts'
import { TRANSFER } from '../transfer-log.ts'
import type { ExpectedTransfer } from './token-state.ts'

export const AUTHORIZATION_USED = `0x${keccak256('AuthorizationUsed(address,bytes32)')}` as const

export const AUTHORIZATION_CANCELED = `0x${keccak256('AuthorizationCanceled(address,bytes32)')}` as const

/**
 * Whether these logs show the authorization used and its money moved: both, on this token, for this amount, one right
 * after the other as the token writes them. Anything looser would let the transfer of one authorization count for
 * several that are used in the same transaction, since a payer may sign another transfer under the nonce of a payment.
 */
export function containsTransfer(
  logs: readonly Log[],
  { token, from, to, value, nonce }: ExpectedTransfer,
): boolean {
  const [payer, payee] = [`0x${word(from)}`, `0x${word(to)}`] as const
  const use = [AUTHORIZATION_USED, payer, nonce].join(' ').toLowerCase()
  const transfer = [TRANSFER, payer, payee, `0x${word(value)}`].join(' ')
  const ours = logs.filter(({ address }) => sameAddress(address, token))
  return ours.some(({ topics }, place) => {
    const next = ours[place + 1]
    if (next === undefined || topics.join(' ').toLowerCase() !== use) return false
    return [...next.topics, next.data].join(' ').toLowerCase() === transfer
  })
}
