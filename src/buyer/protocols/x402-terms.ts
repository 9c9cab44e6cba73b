import { type Address, isAddress } from '../../engine/base/address.ts'
import { isJsonObject, type JsonObject } from '../../engine/base/json.ts'
import { findNetwork, type Network } from '../../engine/base/networks.ts'
import { GAS_SPONSORING } from '../../engine/base/permit2.ts'
import type { ChannelTerms } from '../channels/channel.ts'
import { amountIn } from '../channels/channel-file.ts'
import type { Signing } from './paying-protocol.ts'
import { readSvmTerms, type SvmTerms } from './svm-terms.ts'

/** The schemes of x402 that are signed here. */
export const SCHEMES = ['exact', 'upto', 'batch-settlement'] as const
export type SchemeName = (typeof SCHEMES)[number]

/** Those that need no deposit, the preferred one first: `exact` needs no approval and no node. */
export const USUAL_SCHEMES: readonly SchemeName[] = ['exact', 'upto']

/** One entry of `accepts`, every member of which is understood. */
export type Terms = EvmTerms | SvmTerms

export interface EvmTerms {
  readonly kind: 'evm'
  readonly network: Network
  /** Atomic units: the price, or the most that `upto` may charge. */
  readonly amount: bigint
  readonly payTo: Address
  readonly timeoutSeconds: number
  readonly settlement: SettlementTerms
  /** The entry, echoed unchanged. */
  readonly accepted: JsonObject
}

type SettlementTerms =
  | { readonly scheme: 'exact' }
  /** `facilitator`: the only account that may carry the payment out. `sponsoring`: it sends an approval along. */
  | { readonly scheme: 'upto'; readonly facilitator: Address; readonly sponsoring: 'offered' | 'none' }
  | { readonly scheme: 'batch-settlement'; readonly channel: ChannelTerms }

/** What a scheme puts into a PaymentPayload. */
export type SignedTerms =
  | {
      readonly kind: 'signed'
      readonly payer: string
      readonly payload: JsonObject
      /** Added to the extensions of the challenge. */
      readonly extensions?: JsonObject
      /** What is moved into a channel with it, in atomic units. */
      readonly deposit?: bigint | undefined
    }
  | Extract<Signing, { readonly kind: 'unsigned' }>

/** Undefined for an entry that cannot be signed here. `extensions` are those of the challenge. */
export function readTerms(accepted: JsonObject, extensions: JsonObject): Terms | undefined {
  return readSvmTerms(accepted) ?? readEvmTerms(accepted, extensions)
}

/** The scheme of an entry. */
export function schemeOf(terms: Terms): SchemeName {
  return terms.kind === 'svm' ? terms.scheme : terms.settlement.scheme
}

function readEvmTerms(accepted: JsonObject, extensions: JsonObject): EvmTerms | undefined {
  const { network, amount, asset, payTo, maxTimeoutSeconds } = accepted
  const settlement = readSettlement(accepted, extensions)
  const known = typeof network === 'string' ? findNetwork(network) : undefined
  if (settlement === undefined || known === undefined) return undefined
  if (typeof amount !== 'string' || !/^[1-9]\d{0,20}$/.test(amount)) return undefined
  if (typeof payTo !== 'string' || !isAddress(payTo)) return undefined
  if (typeof maxTimeoutSeconds !== 'number' || !Number.isSafeInteger(maxTimeoutSeconds)) return undefined
  // A token we do not know could be worth anything.
  if (typeof asset !== 'string' || asset.toLowerCase() !== known.token.address.toLowerCase()) return undefined
  return {
    kind: 'evm',
    network: known,
    amount: BigInt(amount),
    payTo,
    timeoutSeconds: maxTimeoutSeconds,
    settlement,
    accepted,
  }
}

function readSettlement({ scheme, extra }: JsonObject, extensions: JsonObject): SettlementTerms | undefined {
  if (scheme === 'exact') return { scheme }
  if (scheme === 'batch-settlement') {
    const channel = isJsonObject(extra) ? readChannelTerms(extra) : undefined
    return channel && { scheme, channel }
  }
  const facilitator = isJsonObject(extra) ? extra['facilitatorAddress'] : undefined
  if (scheme !== 'upto' || typeof facilitator !== 'string' || !isAddress(facilitator)) return undefined
  return { scheme, facilitator, sponsoring: GAS_SPONSORING in extensions ? 'offered' : 'none' }
}

function readChannelTerms(extra: JsonObject): ChannelTerms | undefined {
  const { receiverAuthorizer, withdrawDelay, minDeposit = '0', assetTransferMethod } = extra
  const leastDeposit = amountIn(minDeposit)
  if (typeof receiverAuthorizer !== 'string' || !isAddress(receiverAuthorizer)) return undefined
  if (typeof withdrawDelay !== 'number' || !Number.isSafeInteger(withdrawDelay)) return undefined
  if (leastDeposit === undefined) return undefined
  // Deposits by Permit2 are not signed here.
  if (assetTransferMethod !== undefined && assetTransferMethod !== 'eip3009') return undefined
  return { receiverAuthorizer, withdrawDelay, leastDeposit }
}
