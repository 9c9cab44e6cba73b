import type { Address } from '../../address.ts'
import type { Entry } from '../../ledger/entry.ts'
import type { Span } from '../../chains/evm/rpc.ts'

/** A payment to one of our addresses, as the chain tells it. */
export interface Sighting {
  /** Key of its ledger entry; undefined when the chain alone does not tell it. */
  readonly key: string | undefined
  readonly transaction: string
  readonly block: bigint
  readonly payer: Address
  readonly payee: Address
  /** Atomic units. */
  readonly amount: bigint
}

/** Money that has come in: by a payment protocol, or as people send each other money. */
export type Incoming =
  | { readonly kind: 'payment'; readonly sighting: Sighting }
  | { readonly kind: 'transfer'; readonly amount: bigint }

/** What the chain shows of one payment, up to its newest block. */
export type Fate =
  | { readonly kind: 'moved'; readonly sighting: Sighting }
  /** It was used up, and what it was signed for did not come to our address. */
  | { readonly kind: 'elsewhere'; readonly transaction: string }
  /** The payer has withdrawn it. */
  | { readonly kind: 'canceled'; readonly transaction: string }
  /** Its transaction is in a block and has failed. */
  | { readonly kind: 'reverted'; readonly transaction: string }
  /** Never used, and its time is over. */
  | { readonly kind: 'expired' }
  /** Not used so far; it still can be. */
  | { readonly kind: 'open' }
  /** The node does not show enough to tell. */
  | { readonly kind: 'unclear' }

/** How the payments of one protocol are found on one chain, in one token. */
export interface Trail {
  /** Everything that has come in to these addresses, span by span. Throws `RpcUnavailableError`. */
  incoming(payees: readonly Address[], span: Span): AsyncGenerator<Arrivals>
  /** Throws `RpcUnavailableError`. */
  fate(entry: Entry): Promise<Fate>
}

export interface Arrivals {
  readonly span: Span
  readonly incoming: readonly Incoming[]
}
