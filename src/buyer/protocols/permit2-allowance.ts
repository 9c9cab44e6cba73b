import type { Address } from '../../engine/base/address.ts'
import { PERMIT2 } from '../../engine/base/permit2.ts'

interface Holder {
  /** JSON-RPC endpoint. */
  readonly url: string
  readonly token: Address
  readonly owner: Address
}

/** What Permit2 may move for an account, in atomic units, and the next EIP-2612 nonce of that account. */
export interface Permit2Allowance {
  readonly allowance: bigint
  readonly nonce: bigint
}

/** Undefined when the node does not answer, or not with numbers. */
export async function readPermit2Allowance({
  url,
  token: address,
  owner,
}: Holder): Promise<Permit2Allowance | undefined> {
  const { createClient, http, parseAbi, publicActions } = await import('../../vendor/viem.ts')
  const abi = parseAbi([
    'function allowance(address owner, address spender) view returns (uint256)',
    'function nonces(address owner) view returns (uint256)',
  ])
  const client = createClient({ transport: http(url) }).extend(publicActions)
  try {
    const [allowance, nonce] = await Promise.all([
      client.readContract({ address, abi, functionName: 'allowance', args: [owner, PERMIT2] }),
      client.readContract({ address, abi, functionName: 'nonces', args: [owner] }),
    ])
    return { allowance, nonce }
  } catch {
    return undefined
  }
}
