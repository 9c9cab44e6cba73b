import type { Address } from '../../address.ts'
import type { Network } from '../../networks.ts'
import type { Chain } from '../../chains/evm/rpc.ts'
import { checkGas, gasWarning } from '../../chains/evm/fees.ts'
import { checkToken, type TokenCheck } from './token-check.ts'

/** A network we settle on ourselves. */
export interface Inspected {
  readonly chain: Chain
  readonly network: Network
  readonly signers: readonly Address[]
}

/**
 * Looks at a network once the service has started, which must not wait for it: says what the operator should know, and
 * answers whether the token is the one our offers name. When it differs, the network must not be offered. Never rejects.
 */
export async function inspect(
  { chain, network, signers }: Inspected,
  report: (line: string) => void,
): Promise<TokenCheck> {
  const [token, fees] = await Promise.all([checkToken(chain, network), chain.fees()])
  const line = tokenLine(network, token)
  if (line !== undefined) report(line)
  if (fees.kind !== 'result') return token
  // A key may stand twice in an operator’s list.
  const checks = await Promise.all(
    [...new Set(signers)].map(async (signer) =>
      gasWarning(network, signer, await checkGas(chain, signer, fees.result)),
    ),
  )
  for (const warning of checks) if (warning !== undefined) report(warning)
  return token
}

function tokenLine({ title, id }: Network, token: TokenCheck): string | undefined {
  switch (token.kind) {
    case 'agrees':
      return undefined
    case 'differs':
      return `x402: ${title} (${id}) cannot be offered: ${token.detail}`
    case 'unreachable':
      return `x402: ${title} (${id}): the RPC endpoint does not answer`
  }
}
