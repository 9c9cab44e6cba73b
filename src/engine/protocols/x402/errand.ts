import type { Address } from '../../address.ts'
import type { OwnTransaction } from '../../ledger/entry.ts'
import type { Journal, Refusal } from '../protocol.ts'

/** One transaction somebody wants sent. */
export interface Errand {
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
  /** Wei for each unit of gas. */
  readonly maxFeePerGas: bigint
  /** Milliseconds since the epoch; from then on it would be in vain. */
  readonly expires: number
  /** The last look before it is signed: a refusal keeps it here. Never rejects. */
  readonly check: (signer: Address) => Promise<Refusal | undefined>
  /** Where the signed transaction is written before it is sent. */
  readonly journal: Journal
}

export type Sent =
  /** In the pool: whether it will succeed is for the chain to say. */
  | { readonly kind: 'sent'; readonly transaction: OwnTransaction }
  /** The last look has found that it would fail: nothing was recorded or sent. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: 'unsent'; readonly detail: string }
  /** The node gave no answer after the transaction was handed to it. */
  | { readonly kind: 'unknown'; readonly transaction: OwnTransaction }

/** This signer cannot now, and another may: nothing was recorded or sent. */
export interface Unable {
  readonly kind: 'unable'
  readonly detail: string
}

/** How much a signer tries: only when it can at once, or until it has waited for others and looked at its balance anew. */
export type Effort = 'at once' | 'patiently'

export const IN_USE: Unable = { kind: 'unable', detail: 'the signer is in use by another process' }
export const NO_GAS: Unable = {
  kind: 'unable',
  detail: 'the service cannot pay the fees of the network now',
}
export const TOO_DEAR: Sent = {
  kind: 'unsent',
  detail: 'the network asks for higher fees now than this service pays',
}
export const TOO_LATE: Sent = {
  kind: 'refused',
  refusal: {
    code: 'deadline_too_short',
    detail: 'the payment expires before it could be settled; nothing was charged',
  },
}
export const UNREACHABLE: Sent = { kind: 'unsent', detail: 'the network cannot be reached' }
export const TAKEN_OVER: Sent = { kind: 'unsent', detail: 'another process has taken the signer over' }
export const NOT_TAKEN: Sent = { kind: 'unsent', detail: 'the network refuses the transaction' }
