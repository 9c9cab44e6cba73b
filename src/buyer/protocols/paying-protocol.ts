import { decodeBase58 } from '../../engine/base/base58.ts'
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../engine/base/json.ts'
import type { Micros } from '../../engine/base/money.ts'
import type { ChannelOffer, Channels, Noted } from '../channels/channels.ts'
import type { SvmNetwork } from '../../engine/base/networks.ts'
import type { SvmAccount } from '../../engine/base/svm-signature.ts'

export type ProtocolName = 'x402' | 'mpp'

/** Where a seller puts offers and receipts: headers of a response, or the result of an MCP tool. */
export type Reply =
  | { readonly kind: 'http'; readonly headers: Headers }
  | { readonly kind: 'tool'; readonly result: JsonObject }

/** One way to pay for a 402. Its offers have the function that signs them. */
export interface PayingProtocol {
  readonly name: ProtocolName
  /** The offers of a 402 that can be signed here, the preferred one first. */
  readonly readOffers: (reply: Reply) => readonly Offer[]
  /** The settlement that an answer reports; undefined when it reports none. */
  readonly readReceipt: (reply: Reply) => PaymentReceipt | undefined
  /** Keeps what an answer says of the channel of a payment (`Signing.meta`), for protocols that have channels. */
  readonly note?: (channels: Channels, meta: JsonObject, reply: Reply) => Promise<Noted>
}

/** What a seller says of a settlement. */
export interface PaymentReceipt {
  /** Undefined where nothing was sent to the network. */
  readonly transaction: string | undefined
  /** Whether a voucher has paid, whose money moves later. */
  readonly by?: 'voucher' | undefined
  /** What was charged; undefined where it is not said. */
  readonly amount?: Micros | undefined
  /** What a metered amount consists of, as the seller has written it. */
  readonly usage?: Json | undefined
}

/** The terms of a seller, fully understood: nothing is signed that is not displayed. */
export type Offer = OfferTerms & Signable

interface OfferTerms {
  readonly protocol: ProtocolName
  /** CAIP-2. */
  readonly network: string
  /** For people: the token and its network. */
  readonly money: string
  readonly amount: Micros
  /** Whether the amount is charged, or is the most that may be charged after the work. */
  readonly amountIs: 'price' | 'ceiling'
  readonly payTo: string
  /** Who pays the network for carrying it out; the payer does so on top of the amount. */
  readonly fee: 'seller' | 'payer'
  /** Of an offer that is paid through a channel: its calls are paid one after the other (`Channels.alone`). */
  readonly channel?: ChannelOffer
}

/** The kind of account that pays an offer, and what signs it. */
type Signable =
  | { readonly account: 'evm'; readonly sign: (signer: EvmSigner) => Promise<Signing> }
  | { readonly account: 'svm'; readonly sign: (signer: SvmSigner) => Promise<Signing> }

export type AccountKind = Offer['account']

/** What an offer on an EVM chain needs to be signed. */
export interface EvmSigner {
  readonly key: `0x${string}`
  /** Endpoint of a chain, when one is known. */
  readonly rpcUrl: (chainId: number) => string | undefined
  /** Undefined: the wallet pays through no channel. */
  readonly channels?: Channels | undefined
  readonly now: Date
  readonly random: (bytes: number) => Uint8Array
}

/** What an offer on Solana needs to be signed. */
export interface SvmSigner {
  readonly key: SvmAccount
  /** Endpoint of a network, when one is known. */
  readonly rpcUrl: (network: SvmNetwork) => string | undefined
  readonly random: (bytes: number) => Uint8Array
}

export type Signing =
  | {
      readonly kind: 'signed'
      readonly payer: string
      /** Sent with the request that pays, as often as it takes. */
      readonly headers: Readonly<Record<string, string>>
      /** The same for a tool call. */
      readonly meta: JsonObject
      /** What is moved into a channel with it. */
      readonly deposit?: Micros
    }
  /** Nothing was signed; the sentence says what to do. */
  | { readonly kind: 'unsigned'; readonly reason: string }

/** A member of the `_meta` of a tool's result. */
export function metaOf({ result }: Extract<Reply, { readonly kind: 'tool' }>, name: string): unknown {
  const meta = result['_meta']
  return isJsonObject(meta) ? meta[name] : undefined
}

/** The transaction hash in a receipt; undefined for anything else. */
export function readHash(value: unknown): string | undefined {
  return typeof value === 'string' && /^0x[0-9a-fA-F]{64}$/.test(value) ? value : undefined
}

/** The signature that names a transaction of Solana in a receipt; undefined for anything else. */
export function readSvmSignature(value: unknown): string | undefined {
  return typeof value === 'string' && decodeBase58(value, 64) !== undefined ? value : undefined
}

/** JSON from a seller, in base64 or base64url; undefined when it is not JSON. */
export function decodeJson(text: string): unknown {
  return parseJson(Buffer.from(text, 'base64').toString('utf8'))
}
