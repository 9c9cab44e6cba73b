import { signDigest } from '../../chains/evm/signature.ts'
import type { ChannelAccount } from './channel-account.ts'
import type { ClaimRow } from './channel-calls.ts'
import type { ChannelMirror } from './channel-mirror.ts'
import { channelIdOf, claimDigest } from './typed-data.ts'

/** What can be claimed of a channel; undefined when everything is. */
export function rowOf(
  { config, charged, voucher }: ChannelAccount,
  { claimed }: ChannelMirror,
): ClaimRow | undefined {
  const total = BigInt(charged)
  if (voucher === undefined || total <= BigInt(claimed)) return undefined
  return { config, ceiling: BigInt(voucher.ceiling), signature: voucher.signature, total }
}

/** The signature with which anybody may send a claim. */
export function signClaim(rows: readonly ClaimRow[], key: `0x${string}`, chainId: number): `0x${string}` {
  const entries = rows.map(({ config, ceiling, total }) => ({
    channelId: channelIdOf(config, chainId),
    ceiling,
    total,
  }))
  return signDigest(key, claimDigest(entries, chainId))
}
