import { NETWORKS, type Network } from '../../base/networks.ts'
import type { ListingReport } from '../../payment/listing-report.ts'
import { surveyFacilitators } from '../facilitators/facilitator-client.ts'
import type { OfferedNetworks } from '../offered-networks.ts'
import type { X402Terms } from '../scheme.ts'
import { OpenEvmNetwork, type NetworkSettings } from './evm-network.ts'
import type { SettleableNetwork } from './exact.ts'
import { Reports } from './reports.ts'

/** The EVM networks on which payments are accepted. */
export interface EvmNetworks extends OfferedNetworks<Network, SettleableNetwork> {
  /** Networks that can be offered now and paid by exact. */
  exactOf(x402: X402Terms): readonly SettleableNetwork[]
  /** Node and gas accounts of a network, opened at the first use; undefined when this process has none. */
  ownSettlement(network: Network): OpenEvmNetwork['ownContext']
  /** Reports of facilitators about listings. */
  listings(): Promise<readonly ListingReport[]>
}

/**
 * A network is offered when it can settle: an RPC endpoint and a signer, or a facilitator. Nothing is asked of anybody
 * before the first payment, and a new revision of the catalog keeps the signers of the old one.
 */
export function openEvmNetworks(settings: NetworkSettings): EvmNetworks {
  const { facilitators, listings, names } = settings
  const all = NETWORKS.map((network) => new OpenEvmNetwork(network, settings))
  const [inspected, surveyed] = [new Reports(), new Reports()]
  const find = (id: string): OpenEvmNetwork | undefined => all.find(({ network }) => network.id === id)
  const listed = ({ networks }: X402Terms): OpenEvmNetwork[] => networks.flatMap((id) => find(id) ?? [])
  const offered = (x402: X402Terms): OpenEvmNetwork[] =>
    listed(x402).filter(({ missing, isWithdrawn }) => missing.length === 0 && !isWithdrawn)
  return {
    of: (x402) => offered(x402).map((each) => each.settleable(x402)),
    exactOf: (x402) =>
      offered(x402)
        .filter(({ isWithoutExact }) => !isWithoutExact)
        .map((each) => each.settleable(x402)),
    reachable: (x402) =>
      all.filter(({ missing }) => missing.length === 0).map((each) => each.settleable(x402)),
    closed: (x402) => listed(x402).filter(({ missing }) => missing.length > 0),
    cautions: (x402) =>
      listed(x402).flatMap(({ network: { title, id, chainId }, isUnseen }) =>
        isUnseen
          ? [
              `${title} (${id}) is settled by a facilitator alone: without ${names.rpcUrl(chainId)} an unknown settlement stays unknown`,
            ]
          : [],
      ),
    inspect: async (x402, toOperator) => {
      const report = inspected.next(toOperator)
      const changes = await Promise.all(listed(x402).map((each) => each.inspect(report)))
      return changes.includes('changed') ? 'changed' : 'as before'
    },
    survey: async (x402, toOperator) => {
      const report = surveyed.next(toOperator)
      const theirs = listed(x402).filter(({ isFacilitated }) => isFacilitated)
      const survey = await surveyFacilitators(
        facilitators,
        theirs.map(({ network }) => network),
      )
      survey.problems.forEach((line) => report(`x402: ${line}`))
      const changes = theirs.map((each) => each.noteFacilitators(survey, x402, report))
      return changes.includes('changed') ? 'changed' : 'as before'
    },
    ownSettlement: ({ id }) => find(id)?.ownContext,
    health: async () => {
      const seen = await Promise.all(all.map((each) => each.health()))
      return seen.filter((health) => health !== undefined)
    },
    listings: () => listings.list(),
  }
}
