import { signRecoverable, pointFromScalar } from 'tiny-secp256k1'
import { toChecksum, type Address } from '../../src/engine/base/address.ts'
import { isJsonObject, type Json, type JsonObject } from '../../src/engine/base/json.ts'
import { findNetwork, type Network } from '../../src/engine/base/networks.ts'
import type { Catalog, Route } from '../../src/engine/catalog/catalog.ts'
import { addressOfKey } from '../../src/engine/chains/evm/signature.ts'
import type { Protocol } from '../../src/engine/payment/protocol.ts'
import { authorizationDigest, fieldsOf } from '../../src/engine/chains/evm/eip3009/digest.ts'
import { compileRoutes, fixedPriceOf, routeAt } from '../support/catalogs.ts'
import type { SimulatedChain } from './chain.ts'
import type { Random } from './random.ts'

export const BASE_URL = 'https://shop.example'
export const BASE: Network = networkOf('eip155:8453')

function networkOf(id: string): Network {
  const network = findNetwork(id)
  if (network === undefined) throw new Error(`${id} is in the table`)
  return network
}

/** What is sold, and for how much: one route that is settled after the work, and one that is paid first. */
export interface Market {
  readonly catalog: Catalog
  readonly routes: Readonly<Record<RouteName, Route>>
}
export type RouteName = 'tide' | 'deep'

/** `price`: in USDC, of every route. */
export function openMarket(price: number): Market {
  const catalog = compileRoutes(`  /paid/tide:
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
`)
  return { catalog, routes: { tide: routeAt(catalog, '/paid/tide'), deep: routeAt(catalog, '/paid/deep') } }
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

/** What a buyer has signed. */
export interface SignedPayment {
  readonly header: string
  readonly nonce: string
  /** Milliseconds since the epoch. */
  readonly validBefore: number
}

/** Signs the offer that a process makes for a route, and lets the chain know what was signed. */
export function sign(
  chain: SimulatedChain,
  protocol: Protocol,
  route: Route,
  { key, address }: Wallet,
  random: Random,
  now: number,
): SignedPayment {
  const challenge = protocol.challenge(route, fixedPriceOf(route))
  const demand = challenge?.demand({ resource: BASE_URL + route.path, scope: '', error: 'payment_required' })
  const accepted = Array.isArray(demand?.content['accepts']) ? demand.content['accepts'][0] : undefined
  if (demand === undefined || !isJsonObject(accepted)) throw new Error('nothing is offered')
  const seconds = Math.floor(now / 1000) + Number(accepted['maxTimeoutSeconds'])
  const authorization = {
    from: address,
    to: toChecksum(textOf(accepted['payTo'])),
    value: textOf(accepted['amount']),
    validAfter: '0',
    validBefore: String(seconds),
    nonce: random.hex(32),
  }
  const { signature, recoveryId } = signRecoverable(
    authorizationDigest(BASE, authorization),
    Buffer.from(key.slice(2), 'hex'),
  )
  const hex = `0x${Buffer.from(signature).toString('hex')}${(27 + recoveryId).toString(16)}`
  chain.know(fieldsOf(authorization), hex)
  const payload: JsonObject = {
    x402Version: 2,
    resource: { url: BASE_URL + route.path },
    accepted,
    payload: { signature: hex, authorization },
    extensions: {
      redelivery: demand.content['extensions'] === undefined ? null : redeliveryOf(demand.content),
    },
  }
  const header = Buffer.from(JSON.stringify(payload)).toString('base64')
  return { header, nonce: authorization.nonce, validBefore: seconds * 1000 }
}

function textOf(value: Json | undefined): string {
  if (typeof value !== 'string') throw new Error('an offer has texts')
  return value
}

function redeliveryOf({ extensions }: JsonObject): JsonObject {
  const redelivery = isJsonObject(extensions) ? extensions['redelivery'] : undefined
  return isJsonObject(redelivery) ? redelivery : {}
}
