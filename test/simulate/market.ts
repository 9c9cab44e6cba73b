import { pointFromScalar } from 'tiny-secp256k1'
import { toChecksum, type Address } from '../../src/engine/base/address.ts'
import type { Json } from '../../src/engine/base/json.ts'
import { findNetwork, type Network } from '../../src/engine/base/networks.ts'
import type { Catalog, Route } from '../../src/engine/catalog/catalog.ts'
import { addressOfKey } from '../../src/engine/chains/evm/signature.ts'
import { compileText } from '../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../src/engine/documents/all.ts'
import { routeAt } from '../support/catalogs.ts'
import type { Random } from './random.ts'

export const BASE_URL = 'https://shop.example'
export const BASE: Network = networkOf('eip155:8453')

function networkOf(id: string): Network {
  const network = findNetwork(id)
  if (network === undefined) throw new Error(`${id} is in the table`)
  return network
}

/** What is sold, and for how much: after the work, before it, and for what the work has used. */
export interface Market {
  readonly catalog: Catalog
  readonly routes: Readonly<Record<RouteName, Route>>
}
export type RouteName = 'tide' | 'deep' | 'flow'

/** How a purchase is paid: a scheme of x402, on Base or on Solana. */
export const EVM_WAYS = ['exact', 'upto', 'batch-settlement'] as const
export const WAYS = [...EVM_WAYS, 'exact-svm'] as const
export type Way = (typeof WAYS)[number]

/** The way of an offer or a record. */
export function wayOf({ scheme, network }: { readonly scheme: Json; readonly network: Json }): Json {
  return scheme === 'exact' && typeof network === 'string' && network.startsWith('solana:')
    ? 'exact-svm'
    : scheme
}

/** What a unit of metered work costs in atomic units, and how many the ceiling allows. */
export const UNIT = 100
export const MOST_UNITS = 50

/** `price`: in USDC, of every route that has a fixed one. */
export function openMarket(price: number): Market {
  const text = `catalog: 1
service: { name: Shop, version: '1.0.0', description: Sells things }
payments:
  currency: USD
  x402:
    networks: [base, solana]
    schemes: [exact, upto, batch-settlement]
    channels: { withdraw_delay: 15m, least_deposit: 0.02, claim_after: 0.02, claim_every: 1h, most_unclaimed: 5 }
routes:
  /paid/tide:
    price: ${price}
    handler: tide
    summary: Tides
    timeout: 20s
    example: { tide: 1 }
  /paid/deep:
    price: ${price}
    handler: deep
    settle: upfront
    timeout: 20s
    summary: Depths
    example: { deep: 1 }
  /paid/flow:
    price: { metered: [{ usage_of: units, price: ${UNIT / 1e6} }], ceiling: ${(UNIT * MOST_UNITS) / 1e6} }
    handler: flow
    summary: Flows
    timeout: 20s
    example: { flow: 1 }
`
  const { catalog } = compileText('catalog.yaml', text, {
    handlers: undefined,
    documents: documentNames,
    read: () => undefined,
  })
  const at = (name: RouteName): Route => routeAt(catalog, `/paid/${name}`)
  return { catalog, routes: { tide: at('tide'), deep: at('deep'), flow: at('flow') } }
}

export interface Wallet {
  readonly key: `0x${string}`
  readonly address: Address
}

export function makeWallet(random: Random): Wallet {
  const key = random.hex(32)
  const address = addressOfKey(key)
  if (address === undefined || pointFromScalar(Buffer.from(key.slice(2), 'hex')) === null)
    return makeWallet(random)
  return { key, address: toChecksum(address) }
}
