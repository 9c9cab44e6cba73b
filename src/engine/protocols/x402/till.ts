import { isAddress, toChecksum } from '../../address.ts'
import type { Payments } from '../../catalog/catalog.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { findNetwork, NETWORKS, type Limits, type Network } from '../../networks.ts'
import type { Caller } from '../../chains/evm/rpc.ts'
import type { Bench } from './bench.ts'
import type { OpenTill } from './exact.ts'
import { surveyFacilitators } from './facilitator-survey.ts'
import { createFacilitator, type Facilitator, type FacilitatorAccess } from './facilitator.ts'
import type { Settler } from './settler.ts'
import { addressOfKey } from './signature.ts'
import type { TokenCheck } from './token-check.ts'
import type { Witness } from './witness.ts'

export interface TillSettings {
  readonly payTo: string
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly signerKeys: readonly `0x${string}`[]
  /** Settle where there is no signer; in order of preference. */
  readonly facilitators: readonly FacilitatorAccess[]
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  /** To the facilitators. */
  readonly fetcher: typeof fetch
  /** To the nodes. */
  readonly caller: Caller
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** `changed`: other networks are offered from now on. */
export type Inspection = 'as before' | 'changed'

type Look = (x402: NonNullable<Payments['x402']>, report: (line: string) => void) => Promise<Inspection>

/** What settles on each network that was paid on, by its id. */
type Benches = Map<string, Omit<Bench, 'limits'>>

/** How settling on one network has gone, in this process. */
export interface NetworkHealth {
  readonly network: Network
  /** Wei by the address of the signer, of those that have sent something. */
  readonly balances: ReadonlyMap<string, bigint>
  /** Transactions of ours that are in no block yet, and the age of the oldest in milliseconds. */
  readonly unmined: { readonly count: number; readonly age: number }
  /** Transactions that reverted since the start. */
  readonly reverts: number
  /** Wei that reverted transactions have cost in the last hour, over all processes. */
  readonly gasLost: bigint
  /** Why nothing can be sold on it now, for operators and visitors. */
  readonly trouble: string | undefined
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
  /** What an operator should know of networks that are offered, one sentence each. */
  cautions(x402: NonNullable<Payments['x402']>): readonly string[]
  /** Looks at the networks we settle on ourselves. */
  readonly inspect: Look
  /** Asks the facilitators whether they settle what is offered. For after the start: it takes seconds when they are slow. */
  readonly survey: Look
  /** Of the networks that were paid on since the start and are settled by this process. */
  health(): Promise<readonly NetworkHealth[]>
}

/**
 * A network is offered when it can settle: an RPC endpoint and a signer, or a facilitator. Nothing is asked of anybody
 * before the first payment, and a new revision of the catalog keeps the signers of the old one.
 */
export function createTills(settings: TillSettings): Tills {
  const facilitators = settings.facilitators.map((access) => createFacilitator(access, settings.fetcher))
  const settlers = new Map<string, Promise<Limited>>()
  const benches: Benches = new Map()
  const settlerOf = (network: Network): Promise<Limited> => {
    const known = settlers.get(network.id) ?? openSettler(network, settings, facilitators, benches)
    settlers.set(network.id, known)
    // One that could not be brought up is tried again by the next payment.
    known.catch(() => settlers.delete(network.id))
    return known
  }
  /** Networks whose token is another one than our offers name, or that nobody settles on. */
  const withdrawn = new Set<string>()
  const [inspected, surveyed] = [new Reports(), new Reports()]
  const withdraw = ({ id }: Network, isWithdrawn: boolean): Inspection => {
    if (withdrawn.has(id) === isWithdrawn) return 'as before'
    if (isWithdrawn) withdrawn.add(id)
    else withdrawn.delete(id)
    return 'changed'
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
    of: (x402) => open(networksOf(x402), x402).filter(({ network }) => !withdrawn.has(network.id)),
    reachable: (x402) => open(NETWORKS, x402),
    closed: (x402) =>
      networksOf(x402)
        .map((network) => ({ network, missing: missing(network, settings) }))
        .filter((each) => each.missing.length > 0),
    cautions: (x402) =>
      facilitated(networksOf(x402), settings)
        .filter(({ chainId }) => settings.rpcUrls[chainId] === undefined)
        .map(
          ({ title, id, chainId }) =>
            `${title} (${id}) is settled by a facilitator alone: without RPC_URL_${chainId} an unknown settlement stays unknown`,
        ),
    inspect: async (x402, toOperator) => {
      const report = inspected.next(toOperator)
      const own = networksOf(x402).filter(({ chainId }) => settlesItself(chainId, settings))
      const checks = await Promise.all(
        own.map(async (network): Promise<Inspection> => {
          const check = await inspectNetwork(network, settings, report)
          // A node that does not answer says neither.
          return check === 'unreachable' ? 'as before' : withdraw(network, check === 'differs')
        }),
      )
      return checks.includes('changed') ? 'changed' : 'as before'
    },
    survey: async (x402, toOperator) => {
      const report = surveyed.next(toOperator)
      const networks = facilitated(networksOf(x402), settings)
      const survey = await surveyFacilitators(facilitators, networks)
      survey.problems.forEach((line) => report(`x402: ${line}`))
      const changes = networks.map((network) => withdraw(network, survey.unsupported.includes(network)))
      return changes.includes('changed') ? 'changed' : 'as before'
    },
    health: async () =>
      Promise.all(
        NETWORKS.flatMap((network) => {
          const bench = benches.get(network.id)
          return bench === undefined ? [] : [healthOf(network, bench)]
        }),
      ),
  }
}

async function healthOf(
  network: Network,
  { signers, losses }: Omit<Bench, 'limits'>,
): Promise<NetworkHealth> {
  const { isClosed, reverts } = losses.totals
  const stuck = signers.ready.length === 0 ? 'the network does not include our transactions' : undefined
  const trouble = isClosed ? 'too many transactions have failed lately' : stuck
  const { balances, unmined } = signers
  return { network, balances, unmined, reverts, gasLost: await losses.lastHour(), trouble }
}

/** Lines of a look that is repeated: each is reported when it is new. */
class Reports {
  #before = new Set<string>()

  next(report: (line: string) => void): (line: string) => void {
    const [before, now] = [this.#before, new Set<string>()]
    this.#before = now
    return (line) => {
      now.add(line)
      if (!before.has(line)) report(line)
    }
  }
}

function missing(network: Network, settings: TillSettings): string[] {
  if (settings.facilitators.length > 0) return []
  const { rpcUrls, signerKeys } = settings
  return [
    ...(rpcUrls[network.chainId] === undefined ? [`RPC_URL_${network.chainId}`] : []),
    ...(signerKeys.length === 0 ? ['SETTLER_PRIVATE_KEY'] : []),
  ]
}

async function inspectNetwork(
  network: Network,
  { rpcUrls, signerKeys, caller }: TillSettings,
  report: (line: string) => void,
): Promise<TokenCheck['kind']> {
  const [{ Chain }, { createRpc }, { inspect }] = await Promise.all([
    import('../../chains/evm/rpc.ts'),
    import('../../chains/evm/rpc.ts'),
    import('./inspection.ts'),
  ])
  const chain = new Chain(createRpc(rpcUrls[network.chainId] ?? '', caller))
  const signers = signerKeys.flatMap((key) => addressOfKey(key) ?? [])
  return (await inspect({ chain, network, signers }, report)).kind
}

/** Networks whose payments are settled by others. */
function facilitated(networks: readonly Network[], settings: TillSettings): Network[] {
  if (settings.facilitators.length === 0) return []
  return networks.filter(({ chainId }) => !settlesItself(chainId, settings))
}

function settlesItself(chainId: number, { rpcUrls, signerKeys }: TillSettings): boolean {
  return rpcUrls[chainId] !== undefined && signerKeys.length > 0
}

/**
 * Our own signer wherever there is one. What was once given to a facilitator is finished there, and only there is the
 * whole truth known of it.
 */
async function openSettler(
  network: Network,
  settings: TillSettings,
  facilitators: readonly Facilitator[],
  benches: Benches,
): Promise<Limited> {
  const others =
    facilitators.length === 0 ? undefined : await openFacilitated(network, settings, facilitators)
  if (others !== undefined && !settlesItself(network.chainId, settings)) return others
  const own = await openOwn(network, settings, benches)
  if (others === undefined) return own
  return once((limits) => {
    const [ours, theirs] = [own(limits), others(limits)]
    return {
      ...ours,
      resolve: (movement, dispatch, validBefore, since) =>
        (dispatch?.kind === 'facilitator' ? theirs : ours).resolve(movement, dispatch, validBefore, since),
    }
  })
}

/** One settler for as long as the limits are the same: it knows who has verified what. */
function once(make: Limited): Limited {
  const made = new WeakMap<Limits, Settler>()
  return (limits) => {
    const settler = made.get(limits) ?? make(limits)
    made.set(limits, settler)
    return settler
  }
}

/** Without an RPC endpoint nothing of viem is loaded. */
async function openFacilitated(
  { chainId, id }: Network,
  { rpcUrls, caller, now, sleep }: TillSettings,
  facilitators: readonly Facilitator[],
): Promise<Limited> {
  const { createFacilitatedSettler } = await import('./facilitated-settler.ts')
  const bench = { networkId: id, facilitators, now, sleep }
  const url = rpcUrls[chainId]
  if (url === undefined) return once(() => createFacilitatedSettler({ ...bench, witness: undefined }))
  const witness = await openWitness(url, id, caller)
  return once((limits) => createFacilitatedSettler({ ...bench, witness: witness(limits) }))
}

async function openWitness(
  url: string,
  networkId: string,
  caller: Caller,
): Promise<(limits: Limits) => Witness> {
  const [{ Chain }, { createRpc }, { createWitness }] = await Promise.all([
    import('../../chains/evm/rpc.ts'),
    import('../../chains/evm/rpc.ts'),
    import('./witness.ts'),
  ])
  const chain = new Chain(createRpc(url, caller))
  return (limits) => createWitness({ chain, networkId, limits })
}

/** Brought up at the first payment: viem is most of the process's memory and start-up time. */
async function openOwn(network: Network, settings: TillSettings, benches: Benches): Promise<Limited> {
  const { chainId, id } = network
  const { rpcUrls, signerKeys, ledger, owner, caller, now, sleep, report } = settings
  const [{ Chain }, { createRpc }, { openBench }, { createOwnSettler }] = await Promise.all([
    import('../../chains/evm/rpc.ts'),
    import('../../chains/evm/rpc.ts'),
    import('./bench.ts'),
    import('./own-settler.ts'),
  ])
  const url = rpcUrls[chainId]
  if (signerKeys.length === 0 || url === undefined) throw new Error(`${id} has no signer or no RPC endpoint`)
  const chain = new Chain(createRpc(url, caller))
  const bench = openBench({ network, chain, signerKeys, ledger, owner, now, sleep, report })
  benches.set(id, bench)
  return once((limits) => createOwnSettler({ ...bench, limits }))
}
