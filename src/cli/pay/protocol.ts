import type { Micros } from '../../engine/internal.ts'

export type ProtocolName = 'x402' | 'mpp'

/** One way to pay for a 402. Its offers know the rest: how they are signed, and how a response reports their settlement. */
export interface PayingProtocol {
  readonly name: ProtocolName
  /** The first offer of a 402 that can be signed here; undefined when there is none. */
  readonly readOffer: (headers: Headers) => Offer | undefined
}

/** What a seller asks for, understood to the last term: nothing is signed that is not shown here. */
export interface Offer {
  readonly protocol: ProtocolName
  /** CAIP-2. */
  readonly network: string
  /** For people: the token and the network it is on. */
  readonly money: string
  readonly amount: Micros
  readonly payTo: string
  /** Who pays the network for carrying it out; the payer does so on top of the amount. */
  readonly fee: 'seller' | 'payer'
  readonly sign: (signer: Signer) => Promise<Signing>
  /** Transaction of the settlement that an answer reports; undefined when it reports none. */
  readonly readReceipt: (headers: Headers) => string | undefined
}

/** What signing takes. */
export interface Signer {
  readonly key: `0x${string}`
  /** Endpoint of a chain, when one is known. */
  readonly rpcUrl: (chainId: number) => string | undefined
  readonly now: Date
  readonly random: (bytes: number) => Uint8Array
}

export type Signing =
  | {
      readonly kind: 'signed'
      readonly payer: string
      /** Sent with the request that pays, as often as it takes. */
      readonly headers: Readonly<Record<string, string>>
    }
  /** Nothing was signed; the sentence says what to do. */
  | { readonly kind: 'unsigned'; readonly reason: string }

/** The transaction hash in a receipt; anything else in its place is not shown to anybody. */
export function readHash(value: unknown): string | undefined {
  return typeof value === 'string' && /^0x[0-9a-fA-F]{64}$/.test(value) ? value : undefined
}

/** JSON that somebody else has encoded as base64 or base64url. */
export function decodeJson(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString('utf8'))
  } catch {
    return undefined
  }
}
