import type { Address } from '../base/address.ts'
import type { BlockRange } from '../chains/evm/event-log.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'

/** A payment to one of our addresses, as the chain tells it. */
export interface OnchainPayment {
  /** Key of its record; undefined when the chain alone does not show it. */
  readonly key: string | undefined
  readonly transaction: string
  /** Its number; on Solana, its slot. */
  readonly block: bigint
  readonly payer: string
  readonly payee: string
  /** Atomic units. */
  readonly amount: bigint
}

/** Money that has come in: by a payment protocol, or as people send each other money. */
export type Incoming =
  | { readonly kind: 'payment'; readonly payment: OnchainPayment }
  | { readonly kind: 'transfer'; readonly amount: bigint }

/** What the chain shows of one payment, up to its newest block. */
export type OnchainStatus =
  | { readonly kind: 'moved'; readonly payment: OnchainPayment }
  /** The authorization was used, but the money did not go to our address. */
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

/** How the payments of one protocol are found in the logs of one chain, in one token. */
export interface ReconcileSource {
  /** Everything that has come in to these addresses, span by span. Throws `RpcUnavailableError`. */
  incoming(payees: readonly Address[], span: BlockRange): AsyncGenerator<IncomingSpan>
  /** Throws `RpcUnavailableError`. */
  status(record: PaymentRecord): Promise<OnchainStatus>
}

export interface IncomingSpan {
  readonly span: BlockRange
  readonly incoming: readonly Incoming[]
}
