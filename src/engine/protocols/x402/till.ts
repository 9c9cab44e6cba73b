import { isAddress, toChecksum } from '../../address.ts'
import type { Payments } from '../../catalog/catalog.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { findNetwork, NETWORKS, type Network } from '../../networks.ts'
import type { OpenTill } from './exact.ts'
import type { Settler } from './settler.ts'

export interface TillSettings {
  readonly payTo: string
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly signerKeys: readonly `0x${string}`[]
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  readonly fetcher: typeof fetch
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** The networks of the catalog that money can be taken on here, each with what it takes to settle. */
export interface Tills {
  of(x402: NonNullable<Payments['x402']>): readonly OpenTill[]
  /** Every network that can be settled on here, whether the catalog offers it or not. */
  reachable(x402: NonNullable<Payments['x402']>): readonly OpenTill[]
  /** Networks of the catalog that cannot be offered, and the variables that are missing for each. */
  closed(
    x402: NonNullable<Payments['x402']>,
  ): readonly { readonly network: Network; readonly missing: readonly string[] }[]
}

/**
 * A network is offered when it can settle: an RPC endpoint and a signer. Nothing is asked of the network before its
 * first payment, and a new revision of the catalog keeps the signers of the old one.
 */
export function createTills(settings: TillSettings): Tills {
  const settlers = new Map<string, Promise<Settler>>()
  const settlerOf = (network: Network): Promise<Settler> => {
    const known = settlers.get(network.id) ?? openSettler(network, settings)
    settlers.set(network.id, known)
    // One that could not be brought up is tried again by the next payment.
    known.catch(() => settlers.delete(network.id))
    return known
  }
  const networksOf = ({ networks }: NonNullable<Payments['x402']>): Network[] =>
    networks.flatMap((id) => findNetwork(id) ?? [])
  const payTo = isAddress(settings.payTo) ? toChecksum(settings.payTo) : settings.payTo
  const open = (networks: readonly Network[], { timeout }: NonNullable<Payments['x402']>): OpenTill[] =>
    networks
      .filter((network) => missing(network, settings).length === 0)
      .map((network) => ({
        network,
        payTo,
        timeoutSeconds: Math.floor(timeout / 1000),
        settler: () => settlerOf(network),
      }))
  return {
    of: (x402) => open(networksOf(x402), x402),
    reachable: (x402) => open(NETWORKS, x402),
    closed: (x402) =>
      networksOf(x402)
        .map((network) => ({ network, missing: missing(network, settings) }))
        .filter((each) => each.missing.length > 0),
  }
}

function missing({ chainId }: Network, { rpcUrls, signerKeys }: TillSettings): string[] {
  return [
    ...(rpcUrls[chainId] === undefined ? [`RPC_URL_${chainId}`] : []),
    ...(signerKeys.length === 0 ? ['SETTLER_PRIVATE_KEY'] : []),
  ]
}

/** Brought up at the first payment: viem is most of the process's memory and start-up time. */
async function openSettler(network: Network, settings: TillSettings): Promise<Settler> {
  const { chainId, id } = network
  const { rpcUrls, signerKeys, ledger, owner, fetcher, now, sleep } = settings
  const [{ Chain }, { createRpc }, { Signer }, { openAccount }, { createOwnSettler }] = await Promise.all([
    import('../evm/chain.ts'),
    import('../evm/rpc.ts'),
    import('./signer.ts'),
    import('./account.ts'),
    import('./own-settler.ts'),
  ])
  const [key] = signerKeys
  const url = rpcUrls[chainId]
  if (key === undefined || url === undefined) throw new Error(`${id} has no signer or no RPC endpoint`)
  const chain = new Chain(createRpc(url, fetcher))
  const signer = new Signer({ account: openAccount(key), chain, chainId, ledger, owner, now, sleep })
  return createOwnSettler({ chain, signer, networkId: id, token: network.token.address, now, sleep })
}
