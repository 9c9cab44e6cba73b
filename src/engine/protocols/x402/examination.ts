import type { Address } from '../../address.ts'
import type { Network } from '../../networks.ts'
import type { Caller } from '../../chains/evm/rpc.ts'
import type { GasCheck } from '../../chains/evm/fees.ts'
import type { TokenCheck } from './token-check.ts'

/** A network as its own node tells of it. */
export interface Examined {
  readonly token: TokenCheck
  /** Of each signer once; empty when the node does not say what gas costs. */
  readonly gas: readonly { readonly signer: Address; readonly check: GasCheck }[]
}

/** Asks a node of a network everything that settling on it depends on. Never rejects. */
export async function examineNetwork(
  network: Network,
  rpcUrl: string,
  signers: readonly Address[],
  caller: Caller,
): Promise<Examined> {
  const [{ Chain }, { createRpc }, { checkToken }, { checkGas }] = await Promise.all([
    import('../../chains/evm/rpc.ts'),
    import('../../chains/evm/rpc.ts'),
    import('./token-check.ts'),
    import('../../chains/evm/fees.ts'),
  ])
  const chain = new Chain(createRpc(rpcUrl, caller))
  const [token, fees] = await Promise.all([checkToken(chain, network), chain.fees()])
  if (fees.kind !== 'result') return { token, gas: [] }
  const look = async (signer: Address): Promise<Examined['gas'][number]> => ({
    signer,
    check: await checkGas(chain, signer, fees.result),
  })
  return { token, gas: await Promise.all([...new Set(signers)].map(look)) }
}

/** Which chain a node is of; undefined when it does not answer. */
export async function askChainId(rpcUrl: string, caller: Caller): Promise<bigint | undefined> {
  const [{ Chain }, { createRpc }] = await Promise.all([
    import('../../chains/evm/rpc.ts'),
    import('../../chains/evm/rpc.ts'),
  ])
  const answer = await new Chain(createRpc(rpcUrl, caller)).chainId()
  return answer.kind === 'result' ? answer.result : undefined
}
