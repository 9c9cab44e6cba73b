import { schemesOf, type AllNetworks } from '../engine/app/all-networks.ts'
import type { Catalog } from '../engine/catalog/catalog.ts'
import { VARIABLES } from '../engine/app/option-names.ts'
import { findNetwork } from '../engine/base/networks.ts'
import { areSet } from './terminal-text.ts'

/**
 * Says which metered operations nobody can buy, because no scheme that charges less than was signed can be offered with
 * these settings; undefined when there are none.
 */
export function unsoldMetered({ operations, payments }: Catalog, networks: AllNetworks): string | undefined {
  const [first, ...more] = operations.filter(({ meter, planned }) => meter !== undefined && !planned)
  if (first === undefined) return undefined
  const { x402 } = payments
  const others = more.length === 0 ? '' : ` and ${more.length} more`
  const unsold = `${first.id}${others}: not sold (503 not_configured): a price that is known after the work`
  if (x402 === undefined) return `${unsold} is paid by x402, which the catalog does not name`
  const isSold = schemesOf(x402, networks).some(({ offers }) =>
    offers.some(({ prices }) => prices.includes('metered')),
  )
  if (isSold) return undefined
  const endpoints = x402.networks.slice(0, 1).flatMap((id) => {
    const network = findNetwork(id)
    return network === undefined ? [] : [VARIABLES.rpcUrl(network.chainId)]
  })
  return `${unsold} is settled by a facilitator that lists upto, once it has answered, or by your own account; without one not sold before ${areSet([VARIABLES.signerKeys, ...endpoints])}`
}
