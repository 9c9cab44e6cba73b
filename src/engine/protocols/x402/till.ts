import { isAddress, toChecksum } from '../../address.ts'
import type { Payments } from '../../catalog/catalog.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { findNetwork, NETWORKS, type Limits, type Network } from '../../networks.ts'
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
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** A settler that goes as far as the catalog allows; a new revision may change that. */
type Limited = (limits: Limits) => Settler

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
  const settlers = new Map<string, Promise<Limited>>()
  const settlerOf = (network: Network): Promise<Limited> => {
    const known = settlers.get(network.id) ?? openSettler(network, settings)
    settlers.set(network.id, known)
    // One that could not be brought up is tried again by the next payment.
    known.catch(() => settlers.delete(network.id))
    return known
  }
  const networksOf = ({ networks }: NonNullable<Payments['x402']>): Network[] =>
    networks.flatMap((id) => findNetwork(id) ?? [])
  const payTo = isAddress(settings.payTo) ? toChecksum(settings.payTo) : settings.payTo
  const open = (
    networks: readonly Network[],
    { timeout, limits }: NonNullable<Payments['x402']>,
  ): OpenTill[] =>
    networks
      .filter((network) => missing(network, settings).length === 0)
      .map((network) => ({
        network,
        payTo,
        timeoutSeconds: Math.floor(timeout / 1000),
        settler: async () => (await settlerOf(network))(limits[network.id] ?? network.limits),
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
async function openSettler(network: Network, settings: TillSettings): Promise<Limited> {
  const { chainId, id, token } = network
  const { rpcUrls, signerKeys, ledger, owner, fetcher, now, sleep, report } = settings
  const [{ Chain }, { createRpc }, { Signer }, { Signers }, { openAccount }, { createOwnSettler }] =
    await Promise.all([
      import('../evm/chain.ts'),
      import('../evm/rpc.ts'),
      import('./signer.ts'),
      import('./signers.ts'),
      import('./account.ts'),
      import('./own-settler.ts'),
    ])
  const url = rpcUrls[chainId]
  if (signerKeys.length === 0 || url === undefined) throw new Error(`${id} has no signer or no RPC endpoint`)
  const chain = new Chain(createRpc(url, fetcher))
  // A key that stands twice in the list is one account: two queues would use its nonces twice.
  const accounts = new Map(signerKeys.map(openAccount).map((account) => [account.address, account]))
  const signers = new Signers(
    [...accounts.values()].map(
      (account) => new Signer({ account, chain, network, ledger, owner, now, sleep, report }),
    ),
  )
  return (limits) =>
    createOwnSettler({ chain, signers, networkId: id, token: token.address, limits, now, sleep })
}
