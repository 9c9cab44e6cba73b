import { CHANNELS } from '../../engine/base/channel-contracts.ts'

/** What a channel holds on its chain, in atomic units; undefined when the node does not say. */
export async function readBalance(url: string, channelId: `0x${string}`): Promise<bigint | undefined> {
  const { createClient, http, parseAbi, publicActions } = await import('../../vendor/viem.ts')
  const client = createClient({ transport: http(url) }).extend(publicActions)
  try {
    const [balance] = await client.readContract({
      address: CHANNELS,
      abi: parseAbi(['function channels(bytes32 id) view returns (uint128 balance, uint128 totalClaimed)']),
      functionName: 'channels',
      args: [channelId],
    })
    return balance
  } catch {
    return undefined
  }
}
