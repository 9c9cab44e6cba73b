import { SVM_NETWORKS, type SvmNetwork } from '../../base/networks.ts'
import { Reports } from '../exact-evm/reports.ts'
import { surveyFacilitators } from '../facilitators/facilitator-client.ts'
import type { Inspection, OfferedNetworks } from '../offered-networks.ts'
import type { X402Terms } from '../scheme.ts'
import type { SettleableSvmNetwork } from './exact-svm.ts'
import { OpenSvmNetwork, type SvmNetworkSettings } from './svm-network.ts'

/** The Solana networks on which payments are accepted. */
export type SvmNetworks = OfferedNetworks<SvmNetwork, SettleableSvmNetwork>

/** A network is offered when it can settle: an RPC endpoint and a fee payer, or a facilitator that names its own. */
export function openSvmNetworks(settings: SvmNetworkSettings): SvmNetworks {
  const { facilitators, names } = settings
  const all = SVM_NETWORKS.map((network) => new OpenSvmNetwork(network, settings))
  const [inspected, surveyed] = [new Reports(), new Reports()]
  const listed = ({ networks }: X402Terms): OpenSvmNetwork[] =>
    networks.flatMap((id) => all.find(({ network }) => network.id === id) ?? [])
  const openable = (x402: X402Terms): OpenSvmNetwork[] =>
    listed(x402).filter(({ missing }) => missing.length === 0)

  const look = async (
    x402: X402Terms,
    work: (networks: readonly OpenSvmNetwork[]) => Promise<void>,
  ): Promise<Inspection> => {
    const offered = (): string =>
      JSON.stringify(
        listed(x402).map(({ network, feePayer, isWithdrawn }) => [network.id, feePayer, isWithdrawn]),
      )
    const before = offered()
    await work(openable(x402))
    return offered() === before ? 'as before' : 'changed'
  }

  return {
    of: (x402) =>
      listed(x402).flatMap((each) => {
        const { feePayer, isWithdrawn } = each
        return feePayer === undefined || isWithdrawn ? [] : (each.settleable(x402, feePayer) ?? [])
      }),
    // A payment names its own fee payer, so it is finished also while none is offered.
    reachable: (x402) => all.flatMap((each) => each.settleable(x402, each.feePayer ?? '') ?? []),
    closed: (x402) => listed(x402).filter(({ missing }) => missing.length > 0),
    cautions: (x402) =>
      listed(x402).flatMap(({ network, isUnseen }) =>
        isUnseen
          ? [
              `${network.title} (${network.id}) is settled by a facilitator alone: without ${names.svmRpcUrl(network)} an unknown settlement stays unknown, and nobody checks that your token account exists`,
            ]
          : [],
      ),
    survey: (x402, toOperator) =>
      look(x402, async (networks) => {
        const report = surveyed.next(toOperator)
        const theirs = networks.filter(({ isOwn }) => !isOwn)
        if (theirs.length === 0 || facilitators.length === 0) return
        const { problems, kinds } = await surveyFacilitators(
          facilitators,
          theirs.map(({ network }) => network),
        )
        problems.forEach((line) => report(`x402: ${line}`))
        for (const each of theirs) each.noteFacilitators(kinds, report)
      }),
    inspect: (x402, toOperator) =>
      look(x402, async (networks) => {
        const report = inspected.next(toOperator)
        await Promise.all(networks.map((each) => each.inspect(report)))
      }),
    health: async () => {
      const seen = await Promise.all(all.map((each) => each.health()))
      return seen.filter((health) => health !== undefined)
    },
  }
}
