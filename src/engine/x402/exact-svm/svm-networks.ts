import { findSvmNetwork, SVM_NETWORKS, type SvmNetwork } from '../../base/networks.ts'
import type { Deadline, RpcTransport } from '../../base/runtime.ts'
import { tokenAccountOf } from '../../base/token-account.ts'
import { FeeLosses } from '../../chains/svm/fee-losses.ts'
import { SpentFees, weiOf } from '../../chains/svm/spent-fees.ts'
import type { SvmAccount } from '../../base/svm-signature.ts'
import { SvmChain } from '../../chains/svm/svm-chain.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { NetworkHealth } from '../../payment/network-health.ts'
import type { SettingNames } from '../../payment/setting-names.ts'
import { exactOn, surveyFacilitators, takes } from '../facilitators/facilitator-client.ts'
import type { OpenFacilitators } from '../facilitators/open-facilitators.ts'
import { Reports } from '../exact-evm/reports.ts'
import { PayerLimits } from '../exact-evm/payer-limits.ts'
import type { X402Terms } from '../scheme.ts'
import { createOwnSettler } from './own-settler.ts'
import { RecentBlockhash } from './recent-blockhash.ts'
import type { SettleableSvmNetwork } from './exact-svm.ts'
import { createSvmFacilitatorSettler } from './facilitator-settler.ts'
import { checkSvmNetwork, svmWarningsOf, type SvmCheck } from './svm-check.ts'
import type { SvmSettler } from './svm-settler.ts'

/** `facilitators` settle where there is no fee payer. */
interface SvmNetworkSettings extends OpenFacilitators {
  /** The owner of the token account that is paid; empty when not set. */
  readonly payToSolana: string
  /** JSON-RPC endpoints by CAIP-2 id. */
  readonly svmRpcUrls: Readonly<Record<string, string>>
  /** In the operator’s order: offers name the first. */
  readonly feePayers: readonly SvmAccount[]
  readonly names: SettingNames
  readonly ledger: Ledger
  readonly caller: RpcTransport
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly deadline: Deadline
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
}

type Look = (x402: X402Terms, report: (line: string) => void) => Promise<'as before' | 'changed'>

/** The Solana networks on which payments are accepted, each with its settlement. */
export interface SvmNetworks {
  /** Networks of the catalog that can be offered now. */
  of(x402: X402Terms): readonly SettleableSvmNetwork[]
  /** Every network that can be settled on here, whether the catalog offers it or not. */
  reachable(x402: X402Terms): readonly SettleableSvmNetwork[]
  /** Networks of the catalog that cannot be offered, and the settings that are missing for each. */
  closed(x402: X402Terms): readonly { readonly network: SvmNetwork; readonly missing: readonly string[] }[]
  /** What an operator should know of networks that are offered, one sentence each. */
  cautions(x402: X402Terms): readonly string[]
  /** Asks the facilitators who pays the fees, where they settle. `changed`: other networks are offered from now on. */
  readonly survey: Look
  /** Looks at the token account of the payee, and at the money of our fee payers. */
  readonly inspect: Look
  /** Of the networks that accounts of this process settle on, once they were inspected. */
  health(): Promise<readonly NetworkHealth[]>
}

/** A network is offered when it can settle: an RPC endpoint and a fee payer, or a facilitator that names its own. */
export function openSvmNetworks(settings: SvmNetworkSettings): SvmNetworks {
  const { facilitators, payToSolana: payTo, now } = settings
  const chains = new Map(
    SVM_NETWORKS.flatMap(({ id }) => {
      const url = settings.svmRpcUrls[id]
      return url === undefined ? [] : [[id, new SvmChain(url, settings.caller, settings.deadline)] as const]
    }),
  )
  const recentBlockhashes = new Map(
    SVM_NETWORKS.flatMap((network) => {
      const chain = chains.get(network.id)
      return chain === undefined ? [] : [[network.id, new RecentBlockhash({ network, chain, now })] as const]
    }),
  )
  const isOwn = ({ id }: SvmNetwork): boolean => chains.has(id) && settings.feePayers.length > 0
  const fees = new Map(
    SVM_NETWORKS.map((network) => [
      network.id,
      { losses: new FeeLosses({ ...settings, network }), spent: new SpentFees() },
    ]),
  )
  const settlers = new Map(SVM_NETWORKS.map((network) => [network.id, settlerOf(network)]))
  /** The account of a facilitator that pays the fees, by network. */
  const theirFeePayers = new Map<string, string>()
  /** What was seen last of networks with fee payers of ours. */
  const checks = new Map<string, SvmCheck>()
  /** Networks on which nobody could be paid. */
  const withdrawn = new Set<string>()
  const [inspected, surveyed] = [new Reports(), new Reports()]

  function settlerOf(network: SvmNetwork): SvmSettler {
    const chain = chains.get(network.id)
    const theirs = createSvmFacilitatorSettler({ ...settings, networkId: network.id, chain })
    const counted = fees.get(network.id)
    if (chain === undefined || counted === undefined || !isOwn(network)) return theirs
    const ours = createOwnSettler({
      ...settings,
      network,
      chain,
      feePayers: new Map(settings.feePayers.map((feePayer) => [feePayer.address, feePayer])),
      payers: new PayerLimits<string>((account) => balanceOf(chain, account), settings),
      ...counted,
    })
    // What was sent to a facilitator is finished by that facilitator, which alone knows its state.
    return {
      ...ours,
      resolve: (record) => (record.dispatch?.kind === 'facilitator' ? theirs : ours).resolve(record),
    }
  }

  const missingFor = (network: SvmNetwork): string[] => {
    const { names, feePayers } = settings
    return [
      ...(payTo === '' ? [names.payTo] : []),
      ...(facilitators.length > 0 || chains.has(network.id) ? [] : [names.svmRpcUrl(network)]),
      ...(facilitators.length > 0 || feePayers.length > 0 ? [] : [names.feePayers]),
    ]
  }
  const feePayerOf = (network: SvmNetwork): string | undefined =>
    isOwn(network) ? settings.feePayers[0]?.address : theirFeePayers.get(network.id)
  const open = (
    networks: readonly SvmNetwork[],
    { timeout, testnet }: X402Terms,
    feePayerFor: (network: SvmNetwork) => string | undefined,
  ): SettleableSvmNetwork[] =>
    networks.flatMap((network) => {
      const feePayer = feePayerFor(network)
      const settler = settlers.get(network.id)
      const tokenAccount = tokenAccountOf(payTo, network.token.address)
      if (settler === undefined || tokenAccount === undefined || feePayer === undefined) return []
      if (missingFor(network).length > 0) return []
      return {
        network,
        payTo,
        timeoutSeconds: Math.floor(timeout / 1_000),
        testnet,
        feePayer,
        settler,
        tokenAccount,
        feePayers: isOwn(network) ? settings.feePayers.map(({ address }) => address) : undefined,
        recentBlockhash: recentBlockhashes.get(network.id),
        now,
      }
    })
  const networksOf = ({ networks }: X402Terms): SvmNetwork[] =>
    networks.flatMap((id) => findSvmNetwork(id) ?? [])

  /** Where facilitators settle: who pays the fees. */
  const survey = async (networks: readonly SvmNetwork[], report: (line: string) => void): Promise<void> => {
    if (networks.length === 0 || facilitators.length === 0) return
    const { problems, kinds } = await surveyFacilitators(facilitators, networks)
    problems.forEach((line) => report(`x402: ${line}`))
    for (const { id, title } of networks) {
      const kind = kinds.find((each) => takes(each, exactOn(id)) && each.feePayer !== undefined)
      if (kind?.feePayer !== undefined) theirFeePayers.set(id, kind.feePayer)
      else if (kinds.some((each) => takes(each, exactOn(id))))
        report(
          `x402: ${title} (${id}) cannot be offered: the facilitator names no account that pays the fees`,
        )
    }
  }

  const inspect = async (network: SvmNetwork, report: (line: string) => void): Promise<void> => {
    const chain = chains.get(network.id)
    if (chain === undefined) return
    const payers = isOwn(network) ? settings.feePayers.map(({ address }) => address) : []
    const check = await checkSvmNetwork(chain, network, payTo, payers)
    if (isOwn(network)) checks.set(network.id, check)
    svmWarningsOf(network, check).forEach(report)
    // A node that does not answer proves nothing.
    if (check.account.kind === 'unreachable') return
    if (check.account.kind === 'ready') withdrawn.delete(network.id)
    else withdrawn.add(network.id)
  }
  const healthOf = async (network: SvmNetwork): Promise<readonly NetworkHealth[]> => {
    const [check, counted] = [checks.get(network.id), fees.get(network.id)]
    if (check === undefined || counted === undefined) return []
    const { losses, spent } = counted
    const { lost, isClosed } = await losses.lastHour()
    const unpaid = withdrawn.has(network.id) ? 'the payee has no token account' : undefined
    const trouble = isClosed ? 'too many transactions have failed lately' : unpaid
    return [
      {
        network,
        balances: new Map(
          check.feePayers.flatMap(({ address, balance }) =>
            balance === undefined ? [] : [[address, weiOf(balance)] as const],
          ),
        ),
        // A payment that is in no block is followed by the request that has sent it.
        unmined: { count: 0, age: 0 },
        totals: spent.totals,
        reverts: losses.failed,
        gasLost: weiOf(lost),
        isNodeAway: check.account.kind === 'unreachable',
        trouble,
      },
    ]
  }
  const openable = (x402: X402Terms): SvmNetwork[] =>
    networksOf(x402).filter((network) => missingFor(network).length === 0)
  const offered = (x402: X402Terms): string =>
    JSON.stringify(networksOf(x402).map((each) => [each.id, feePayerOf(each), withdrawn.has(each.id)]))
  const look = async (
    x402: X402Terms,
    report: (line: string) => void,
    at: (report: (line: string) => void) => Promise<void>,
  ): Promise<'as before' | 'changed'> => {
    const before = offered(x402)
    await at(report)
    return offered(x402) === before ? 'as before' : 'changed'
  }

  return {
    of: (x402) =>
      open(networksOf(x402), x402, feePayerOf).filter(({ network }) => !withdrawn.has(network.id)),
    // A payment names its own fee payer, so it is finished also while none is offered.
    reachable: (x402) => open(SVM_NETWORKS, x402, (network) => feePayerOf(network) ?? ''),
    closed: (x402) =>
      networksOf(x402)
        .map((network) => ({ network, missing: missingFor(network) }))
        .filter(({ missing }) => missing.length > 0),
    cautions: (x402) =>
      networksOf(x402)
        .filter((network) => facilitators.length > 0 && !isOwn(network) && !chains.has(network.id))
        .map((network) => {
          const name = settings.names.svmRpcUrl(network)
          return `${network.title} (${network.id}) is settled by a facilitator alone: without ${name} an unknown settlement stays unknown, and nobody checks that your token account exists`
        }),
    survey: (x402, toOperator) =>
      look(x402, surveyed.next(toOperator), (report) =>
        survey(
          openable(x402).filter((network) => !isOwn(network)),
          report,
        ),
      ),
    health: async () => (await Promise.all(SVM_NETWORKS.map(healthOf))).flat(),
    inspect: (x402, toOperator) =>
      look(x402, inspected.next(toOperator), async (report) => {
        await Promise.all(openable(x402).map((network) => inspect(network, report)))
      }),
  }
}

async function balanceOf(chain: SvmChain, account: string): Promise<bigint | undefined> {
  const answer = await chain.tokenAccount(account)
  if (answer.kind !== 'result') return undefined
  return answer.result?.amount ?? 0n
}
