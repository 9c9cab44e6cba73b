import type { NetworkHealth } from '../../payment/network-health.ts'
import { isAddress, toChecksum } from '../../base/address.ts'
import { Chain } from '../../chains/evm/chain.ts'
import { CANNOT_LOOK, lookAtBlocks } from '../../chains/evm/finality.ts'
import type { Every } from '../../base/every.ts'
import type { Deadline, RpcTransport } from '../../base/runtime.ts'
import { onceResolved } from '../../base/once.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { findNetwork, NETWORKS, type Limits, type Network } from '../../base/networks.ts'
import type { SettingNames } from '../../payment/setting-names.ts'
import { surveyFacilitators } from '../facilitators/facilitator-client.ts'
import type { OpenFacilitators } from '../facilitators/open-facilitators.ts'
import { createFacilitatorSettler } from './facilitator-settler.ts'
import type { ListingReport } from '../../payment/listing-report.ts'
import { checkNetwork, warningsOf } from './network-check.ts'
import { addressOfKey } from '../../chains/evm/signature.ts'
import type { X402Terms } from '../scheme.ts'
import { Reports } from './reports.ts'
import { createLocalSettler } from './own-settler.ts'
import { openContext, type SettlementContext } from './settlement-context.ts'
import { type Settler } from './settler.ts'
import type { ChainReader } from './onchain-status.ts'
import { SharedAccounts } from './shared-accounts.ts'
import { PermitAccounts } from '../facilitators/permit-accounts.ts'
import type { FacilitatedSettlement, OwnSettlement, SettleableNetwork } from './exact.ts'

/** `facilitators` settle where there is no signer. */
export interface NetworkSettings extends OpenFacilitators {
  readonly payTo: string
  /** JSON-RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly signerKeys: readonly `0x${string}`[]
  readonly names: SettingNames
  readonly ledger: Ledger
  /** Name of this process in leases. */
  readonly owner: string
  /** To the nodes. */
  readonly caller: RpcTransport
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly every: Every
  readonly deadline: Deadline
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

/** `changed`: other networks are offered from now on. */
type Inspection = 'as before' | 'changed'

type Look = (x402: X402Terms, report: (line: string) => void) => Promise<Inspection>

/** The networks of the catalog on which payments are accepted, each with its settlement. */
export interface X402Networks {
  /** Networks of the catalog that can be offered now. */
  of(x402: X402Terms): readonly SettleableNetwork[]
  /** Those of them that can be paid by exact. */
  exactOf(x402: X402Terms): readonly SettleableNetwork[]
  /** Every network that can be settled on here, whether the catalog offers it or not. */
  reachable(x402: X402Terms): readonly SettleableNetwork[]
  /** Networks of the catalog that cannot be offered, and the settings that are missing for each. */
  closed(x402: X402Terms): readonly { readonly network: Network; readonly missing: readonly string[] }[]
  /** What an operator should know of networks that are offered, one sentence each. */
  cautions(x402: X402Terms): readonly string[]
  /** Looks at the networks we settle on ourselves. */
  readonly inspect: Look
  /** Asks the facilitators whether they settle the offered networks, after the start: it may take seconds. */
  readonly survey: Look
  /** Node and gas accounts of a network, opened at the first use; undefined when this process has none. */
  ownSettlement(network: Network): (() => Promise<Omit<SettlementContext, 'limits'>>) | undefined
  /** Health of networks with payments since the start that this process settles. */
  health(): Promise<readonly NetworkHealth[]>
  /** Reports of facilitators about listings. */
  listings(): Promise<readonly ListingReport[]>
}

/**
 * A network is offered when it can settle: an RPC endpoint and a signer, or a facilitator. Nothing is asked of anybody
 * before the first payment, and a new revision of the catalog keeps the signers of the old one.
 */
export function openX402Networks(settings: NetworkSettings): X402Networks {
  const { facilitators, listings } = settings
  const contexts: Contexts = new Map()
  const own = new Map(
    NETWORKS.flatMap((network) => {
      const url = settings.rpcUrls[network.chainId]
      if (url === undefined || !settlesItself(network.chainId, settings)) return []
      return [[network.id, onceResolved(() => openOwn(network, url, settings, contexts))] as const]
    }),
  )
  const settlers = new Map(
    NETWORKS.map((network) => [
      network.id,
      onceResolved(() => openSettler(network, settings, own.get(network.id))),
    ]),
  )
  const permitAccounts = new Map(NETWORKS.map(({ id }) => [id, new PermitAccounts(id)] as const))
  const theirsOn = ({ id, chainId }: Network, limits: Limits): FacilitatedSettlement | undefined => {
    const at = permitAccounts.get(id)
    if (facilitators.length === 0 || at === undefined) return undefined
    return { ...settings, networkId: id, accounts: at, reader: readerOf({ id, chainId }, settings, limits) }
  }
  const accounts = [...new Set(settings.signerKeys.flatMap((key) => addressOfKey(key) ?? []))]
  const shared = new Map(NETWORKS.map(({ id }) => [id, new SharedAccounts(id, accounts, settings)] as const))
  /** Networks with another token than the offers name, and networks that nobody settles. */
  const withdrawn = new Set<string>()
  /** Networks that facilitators settle by upto alone. */
  const withoutExact = new Set<string>()
  const [inspected, surveyed] = [new Reports(), new Reports()]
  const networksOf = ({ networks }: X402Terms): Network[] => networks.flatMap((id) => findNetwork(id) ?? [])
  const payTo = isAddress(settings.payTo) ? toChecksum(settings.payTo) : settings.payTo
  const ownOf = ({ id }: Network, limits: Limits): OwnSettlement | undefined => {
    const [openContextOf, sharedOn] = [own.get(id), shared.get(id)]
    if (openContextOf === undefined || sharedOn === undefined) return undefined
    return {
      accounts,
      shared: sharedOn,
      now: settings.ledger.now,
      context: async () => ({ ...(await openContextOf()), limits }),
    }
  }
  const open = (networks: readonly Network[], { timeout, limits, testnet }: X402Terms): SettleableNetwork[] =>
    networks
      .filter((network) => missing(network, settings).length === 0)
      .map((network) => ({
        network,
        payTo,
        timeoutSeconds: Math.floor(timeout / 1000),
        testnet,
        settler: onceResolved(async () => {
          const limited = await settlers.get(network.id)?.()
          if (limited === undefined) throw new Error(`${network.id} is not in the table of networks`)
          return limited(limits[network.id] ?? network.limits)
        }),
        own: ownOf(network, limits[network.id] ?? network.limits),
        theirs: theirsOn(network, limits[network.id] ?? network.limits),
        lookAtBlocks: async (blocks) => {
          const url = settings.rpcUrls[network.chainId]
          if (url === undefined) return CANNOT_LOOK
          const { confirmations } = limits[network.id] ?? network.limits
          return lookAtBlocks(new Chain(url, settings.caller, settings.deadline), confirmations, blocks)
        },
      }))
  const of = (x402: X402Terms): readonly SettleableNetwork[] =>
    open(networksOf(x402), x402).filter(({ network }) => !withdrawn.has(network.id))
  return {
    of,
    exactOf: (x402) => of(x402).filter(({ network }) => !withoutExact.has(network.id)),
    reachable: (x402) => open(NETWORKS, x402),
    closed: (x402) =>
      networksOf(x402)
        .map((network) => ({ network, missing: missing(network, settings) }))
        .filter((each) => each.missing.length > 0),
    cautions: (x402) =>
      facilitated(networksOf(x402), settings).flatMap(({ title, id, chainId }) => {
        const { names, rpcUrls } = settings
        const rpcUrl = names.rpcUrl(chainId)
        return rpcUrls[chainId] === undefined
          ? [
              `${title} (${id}) is settled by a facilitator alone: without ${rpcUrl} an unknown settlement stays unknown`,
            ]
          : []
      }),
    inspect: async (x402, toOperator) => {
      const report = inspected.next(toOperator)
      const own = networksOf(x402).filter(({ chainId }) => settlesItself(chainId, settings))
      const signers = settings.signerKeys.flatMap((key) => addressOfKey(key) ?? [])
      const checks = await Promise.all(
        own.map(async (network): Promise<Inspection> => {
          const url = settings.rpcUrls[network.chainId] ?? ''
          const check = await checkNetwork(network, url, signers, settings.caller)
          warningsOf(network, check).forEach(report)
          const { kind } = check.token
          // A node that does not answer proves nothing.
          return kind === 'unreachable' ? 'as before' : note(withdrawn, network, kind === 'differs')
        }),
      )
      return checks.includes('changed') ? 'changed' : 'as before'
    },
    survey: async (x402, toOperator) => {
      const report = surveyed.next(toOperator)
      const networks = facilitated(networksOf(x402), settings)
      const survey = await surveyFacilitators(facilitators, networks)
      survey.problems.forEach((line) => report(`x402: ${line}`))
      const changes = networks.flatMap((network) => {
        const { title, id, chainId } = network
        const at = permitAccounts.get(id)
        const found =
          survey.problems.length > 0 && survey.kinds.length === 0 ? 'as before' : at?.note(survey.kinds)
        if (x402.schemes.includes('upto') && at?.offered === undefined)
          report(
            `x402: ${title} (${id}) does not offer upto: no facilitator lists an account for it; an own account needs ${settings.names.rpcUrl(chainId)} and ${settings.names.signerKeys}`,
          )
        const isWithoutExact = survey.withoutExact.includes(id)
        if (x402.schemes.includes('exact') && isWithoutExact)
          report(`x402: ${title} (${id}) is paid by upto alone: no facilitator lists exact there`)
        return [
          note(withdrawn, network, survey.unsupported.includes(id)),
          note(withoutExact, network, isWithoutExact),
          found,
        ]
      })
      return changes.includes('changed') ? 'changed' : 'as before'
    },
    ownSettlement: ({ id }) => own.get(id),
    health: async () =>
      Promise.all(
        NETWORKS.flatMap((network) => {
          const context = contexts.get(network.id)
          return context === undefined ? [] : [healthOf(network, context)]
        }),
      ),
    listings: () => listings.list(),
  }
}

/** Keeps or drops a network in a set. */
function note(networks: Set<string>, { id }: Network, isIn: boolean): Inspection {
  if (networks.has(id) === isIn) return 'as before'
  if (isIn) networks.add(id)
  else networks.delete(id)
  return 'changed'
}

type OwnContext = Omit<SettlementContext, 'limits'> & { readonly isNodeAway: () => boolean }
type Contexts = Map<string, OwnContext>

async function openOwn(
  network: Network,
  url: string,
  settings: NetworkSettings,
  contexts: Contexts,
): Promise<OwnContext> {
  const node = watchNode(settings.caller)
  const chain = new Chain(url, node.caller, settings.deadline)
  const context = { ...(await openContext({ ...settings, network, chain })), isNodeAway: node.isAway }
  contexts.set(network.id, context)
  return context
}

/** Remembers whether the last request had an answer. */
function watchNode(caller: RpcTransport): { readonly caller: RpcTransport; readonly isAway: () => boolean } {
  let isAway = false
  return {
    isAway: () => isAway,
    caller: async (url, request) => {
      try {
        const response = await caller(url, request)
        isAway = false
        return response
      } catch (fault) {
        isAway = true
        throw fault
      }
    },
  }
}

async function healthOf(
  network: Network,
  { signers, losses, isNodeAway }: OwnContext,
): Promise<NetworkHealth> {
  const { isClosed, reverts } = losses.totals
  const stuck = signers.ready.length === 0 ? 'the network does not include our transactions' : undefined
  const trouble = isClosed ? 'too many transactions have failed lately' : stuck
  const { balances, unmined, totals } = signers
  return {
    network,
    balances,
    unmined,
    totals,
    reverts,
    gasLost: await losses.lastHour(),
    isNodeAway: isNodeAway(),
    trouble,
  }
}

function missing(network: Network, settings: NetworkSettings): string[] {
  if (settings.facilitators.length > 0) return []
  const { rpcUrls, signerKeys, names } = settings
  return [
    ...(rpcUrls[network.chainId] === undefined ? [names.rpcUrl(network.chainId)] : []),
    ...(signerKeys.length === 0 ? [names.signerKeys] : []),
  ]
}

/** Networks whose payments are settled by facilitators. */
function facilitated(networks: readonly Network[], settings: NetworkSettings): Network[] {
  if (settings.facilitators.length === 0) return []
  return networks.filter(({ chainId }) => !settlesItself(chainId, settings))
}

function settlesItself(chainId: number, { rpcUrls, signerKeys }: NetworkSettings): boolean {
  return rpcUrls[chainId] !== undefined && signerKeys.length > 0
}

/** The node that shows what facilitators have done. */
function readerOf(
  { id: networkId, chainId }: Pick<Network, 'id' | 'chainId'>,
  { rpcUrls, caller, deadline }: NetworkSettings,
  limits: Limits,
): ChainReader | undefined {
  const url = rpcUrls[chainId]
  return url === undefined ? undefined : { networkId, chain: new Chain(url, caller, deadline), limits }
}

/** A settler that goes as far as the catalog allows; a new revision may change that. */
type Limited = (limits: Limits) => Settler

/**
 * Our own signer if there is one, opened at the first payment. A settlement that was sent to a facilitator is
 * finished by that facilitator, which alone knows its state.
 */
async function openSettler(
  network: Network,
  settings: NetworkSettings,
  openOwnContext: (() => Promise<OwnContext>) | undefined,
): Promise<Limited> {
  const { facilitators, now, sleep, listings } = settings
  const { id: networkId } = network
  const theirs: Limited = (limits) => {
    const reader = readerOf(network, settings, limits)
    return createFacilitatorSettler({ networkId, facilitators, reader, now, sleep, listings })
  }
  if (openOwnContext === undefined) return theirs
  const context = await openOwnContext()
  return (limits) => {
    const [ours, others] = [createLocalSettler({ ...context, limits }), theirs(limits)]
    return {
      ...ours,
      resolve: (expected, dispatch, validBefore, since) =>
        (dispatch?.kind === 'facilitator' && facilitators.length > 0 ? others : ours).resolve(
          expected,
          dispatch,
          validBefore,
          since,
        ),
    }
  }
}
