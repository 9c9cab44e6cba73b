import type { Entry } from '../../ledger/entry.ts'
import type { Span } from '../../chains/evm/rpc.ts'
import type { Fate, Sighting } from './trail.ts'

/** Where the ledger and the chain do not tell the same; entries come without their answers. */
export type Difference =
  /** The ledger says charged, and the chain shows no such movement. */
  | { readonly kind: 'missing_on_chain'; readonly entry: Entry; readonly fate: Fate }
  /** A payment has come in that the ledger has never heard of. */
  | { readonly kind: 'not_in_ledger'; readonly sighting: Sighting }
  /** A payment has come in that the ledger holds for uncharged. */
  | { readonly kind: 'not_booked'; readonly entry: Entry; readonly sighting: Sighting }
  /** Both know it, and not the same of it. */
  | {
      readonly kind: 'differs'
      readonly entry: Entry
      readonly sighting: Sighting
      readonly fields: readonly Field[]
    }
  /** The ledger has not known for long whether it was charged; `fate` is what the chain says. */
  | { readonly kind: 'unresolved'; readonly entry: Entry; readonly fate: Fate }

export type Field = 'amount' | 'payer' | 'payee' | 'transaction'

/** What there is to say of one token on one network. */
export type Statement = Checked | Unchecked

export interface Checked {
  readonly kind: 'checked'
  readonly protocol: string
  readonly network: string
  readonly asset: string
  readonly payees: readonly string[]
  readonly span: Span
  /** Payments on which both agree. */
  readonly agreed: number
  /** Payments somebody is at right now. */
  readonly underway: number
  /** Money that has come in without being a payment. */
  readonly transfers: { readonly count: number; readonly amount: bigint }
  readonly differences: readonly Difference[]
}

export interface Unchecked {
  readonly kind: 'unchecked'
  readonly protocol: string
  readonly network: string
  readonly asset: string
  /** For the operator: what is missing. */
  readonly reason: string
}
