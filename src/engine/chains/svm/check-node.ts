import type { SvmNetwork } from '../../base/networks.ts'
import { patiently, RpcUnavailableError } from '../evm/log-scanner.ts'
import type { SvmChain } from './svm-chain.ts'

/** Throws `RpcUnavailableError` when a node is on another network, is behind, or does not answer. */
export async function checkSvmNode(
  node: { readonly chain: SvmChain; readonly sleep: (ms: number) => Promise<void> },
  { id }: SvmNetwork,
): Promise<void> {
  const genesis = await patiently(node, () => node.chain.genesisHash())
  // The id of a network is the start of its genesis hash.
  if (!genesis.startsWith(id.slice('solana:'.length)))
    throw new RpcUnavailableError('its node is on another network')
  if ((await patiently(node, () => node.chain.health())) !== 'ok')
    throw new RpcUnavailableError('its node is behind')
}
