import type { Address } from '../../address.ts'
import type { Refusal } from '../../errors.ts'
import type { OwnTransaction } from '../../ledger/payment-record.ts'
import type { Bid } from './fees.ts'
import type { Sender, SignedTransaction, TransactionReceipt } from './rpc.ts'

/** An account that pays the gas. */
export interface Account {
  readonly address: Address
  /** Serialises and signs an EIP-1559 transaction. */
  readonly sign: (transaction: UnsignedTransaction) => SignedTransaction
}

interface UnsignedTransaction extends Bid {
  readonly chainId: number
  readonly nonce: number
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
}

/** One transaction to be sent. */
export interface TransactionRequest {
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
  /** Wei for each unit of gas, at the most. */
  readonly maxFeePerGas: bigint
  /** Milliseconds since the epoch; from then on it would be in vain. */
  readonly expires: number
  /** The last check before it is signed, within `timeout` milliseconds: a refusal keeps it here. Never rejects. */
  readonly check: (sender: Sender, timeout: number) => Promise<Refusal | undefined>
  /** Where the signed transaction is written before it is sent. */
  readonly journal: { record(transaction: OwnTransaction): Promise<void> }
}

/** A transaction on its way to a block. A replacement at a higher fee has another hash, and the same effect or none. */
export interface Tracked {
  /** Every hash it was sent under, newest first. */
  readonly hashes: () => readonly string[]
  /** To be called when a block with it is seen. */
  readonly mined: (receipt: TransactionReceipt) => void
}

export type SendResult =
  /** In the pool: whether it will succeed is for the chain to say. */
  | ({ readonly kind: 'sent'; readonly transaction: OwnTransaction } & Tracked)
  /** The last check has found that it would fail: nothing was recorded or sent. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: 'unsent'; readonly detail: string }
  /** The node gave no answer after the transaction was handed to it. */
  | { readonly kind: 'unknown'; readonly transaction: OwnTransaction }

/** This signer cannot now, and another may: nothing was recorded or sent. */
export interface SignerBusy {
  readonly kind: 'busy'
  readonly detail: string
}

/** How much a signer tries: only when it can at once, or until it has waited for others and looked at its balance anew. */
export type WaitMode = 'at once' | 'patiently'

export const IN_USE: SignerBusy = { kind: 'busy', detail: 'the signer is in use by another process' }
export const NO_GAS: SignerBusy = {
  kind: 'busy',
  detail: 'the service cannot pay the fees of the network now',
}
/** What a check answers when its node says that the sender cannot pay for the gas. */
export const SENDER_UNFUNDED: Refusal = {
  code: 'chain_unavailable',
  detail: `${NO_GAS.detail}; nothing was charged`,
}
export const STUCK: SignerBusy = {
  kind: 'busy',
  detail: 'the network does not include the transactions of this service now',
}
export const FEES_TOO_HIGH = {
  kind: 'unsent',
  detail: 'the network asks for higher fees now than this service pays',
} as const satisfies SendResult
export const TOO_LATE = {
  kind: 'refused',
  refusal: {
    code: 'deadline_too_short',
    detail: 'the payment expires before it could be settled; nothing was charged',
  },
} as const satisfies SendResult
export const UNREACHABLE: SendResult = { kind: 'unsent', detail: 'the network cannot be reached' }
export const TAKEN_OVER: SendResult = { kind: 'unsent', detail: 'another process has taken the signer over' }
export const NOT_TAKEN: SendResult = { kind: 'unsent', detail: 'the network refuses the transaction' }

/** A request in the queue of a signer. */
export interface Waiting {
  readonly request: TransactionRequest
  readonly mode: WaitMode
  readonly resolve: (result: SendResult | SignerBusy) => void
  readonly reject: (fault: unknown) => void
  /** When its check was passed outside of a batch: milliseconds since the epoch. */
  readonly checkedAt?: number
  /** How often another transaction turned out to hold its nonce. */
  readonly displaced: number
}

/** One that may be signed. */
export interface Ready extends Waiting {
  readonly price: Bid
  readonly cost: bigint
}

export interface Signed {
  readonly ready: Ready
  readonly transaction: OwnTransaction & { readonly raw: `0x${string}` }
}
