import type { Catalog, Route } from '../../src/engine/catalog/catalog.ts'
import { loadCatalog } from '../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../src/engine/documents/all.ts'
import { findNetwork, type Network } from '../../src/engine/base/networks.ts'
import type { Protocol } from '../../src/engine/payment/protocol.ts'
import { exactScheme } from '../../src/engine/x402/exact-evm/exact.ts'
import { createX402 } from '../../src/engine/x402/x402.ts'
import { fileURLToPath } from 'node:url'
import { fixedPriceOf } from './catalogs.ts'

export const PAY_TO = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
export const BASE_URL = 'https://api.game-market-data.example.com'

/** The catalog that ships. */
export function shippedCatalog(): Catalog {
  const file = fileURLToPath(new URL('../../catalog.yaml', import.meta.url))
  return loadCatalog(file, { handlers: undefined, documents: documentNames }).catalog
}

export function paidRoutes({ routes }: Catalog): Route[] {
  return routes.filter(({ kind }) => kind === 'paid')
}

/** The first paid route, and what is asked for one call of it. */
export function firstOffer(catalog: Catalog) {
  const [route] = paidRoutes(catalog)
  if (route === undefined) throw new Error('no route')
  const resource = `${BASE_URL}${route.path}`
  const price = fixedPriceOf(route)
  return { route, resource, offer: { endpoint: route, resource, scope: 'none', price } }
}

export function networkNamed(name: string): Network {
  const network = findNetwork(name)
  if (network === undefined) throw new Error(`${name} is no network`)
  return network
}

/** The protocol on networks that nothing is ever settled on. */
export function quietX402(
  { service }: Pick<Catalog, 'service'>,
  networks: readonly string[] = ['base', 'polygon', 'arbitrum', 'avalanche'],
  versions: 'both versions' | 'version 2 alone' = 'both versions',
): Protocol {
  const offered = networks.map((name) => ({
    network: networkNamed(name),
    payTo: PAY_TO,
    timeoutSeconds: 60,
    testnet: false,
    settler: () => Promise.reject(new Error('nothing is settled here')),
    own: undefined,
    theirs: undefined,
    lookAtBlocks: () => Promise.reject(new Error('no block is looked at here')),
  }))
  return createX402({
    service,
    baseUrl: BASE_URL,
    schemes: [exactScheme({ offered, reachable: offered })],
    v1: versions === 'both versions',
    random: (bytes) => new Uint8Array(bytes).fill(255),
  })
}
