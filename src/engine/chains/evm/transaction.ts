import type { Address } from '../../base/address.ts'
import type { Refusal } from '../../base/errors.ts'
import type { JointCommit } from '../../ledger/joint-commit.ts'
import type { OwnTransaction } from '../../ledger/payment-record.ts'
import type { Bid } from './fees.ts'
import type { Sender, TransactionReceipt } from './chain.ts'
import type { RpcAnswer } from './json-rpc.ts'

/** The effect of a transaction, and its deadline. */
export interface TransactionCall {
  readonly to: Address
  readonly data: `0x${string}`
  readonly gas: bigint
  /** Maximum wei for each unit of gas. */
  readonly maxFeePerGas: bigint
  /** Milliseconds since the epoch; afterwards the call would fail. */
  readonly expires: number
}

/** A call to send, in its own transaction or in a batch. */
export interface TransactionRequest extends TransactionCall {
  /** The account that must send it. Undefined: any of ours. */
  readonly sender?: Address
  /** The account that signed the payload. Such a call may share a transaction. Undefined: it is sent alone. */
  readonly payer?: Payer
  /**
   * Reserves the wei that the call can lose, before it is signed. `in flight`: ask again when others are mined. The
   * amount is held until the caller releases it; a second call for one request changes the amount. Rejects when it
   * cannot be recorded.
   */
  readonly reserve: (wei: bigint) => Promise<'held' | 'in flight' | 'lost'>
  /** When the call was last simulated for a payer who may be trusted for a moment, in milliseconds since the epoch. */
  readonly simulatedAt?: number | undefined
  /** The last check before signing, within `timeout` milliseconds: a refused request is not sent. Never rejects. */
  readonly check: (sender: Sender, timeout: number) => Promise<Refusal | undefined>
  /** Records the signed transaction before it is sent. */
  readonly journal: { record(transaction: OwnTransaction, joint?: JointCommit): Promise<void> }
}

/** Payers without a settled payment share no transaction with others, and few share one. */
export interface Payer {
  readonly address: Address
  readonly standing: 'known' | 'new'
}

/** An unmined transaction. A replacement at a higher fee has another hash, and the same effect or none. */
export interface Tracked {
  /** Requests the receipt for every hash under which it was sent; concurrent callers share one request. */
  readonly receipt: () => Promise<RpcAnswer<TransactionReceipt | null>>
  /** The payers of a batch; empty for a single call. */
  readonly payers: readonly Address[]
  /** Called when a block with it is seen. */
  readonly mined: (receipt: TransactionReceipt) => void
}

export type SendResult =
  /** In the pool; the chain decides whether it succeeds. */
  | ({ readonly kind: 'sent'; readonly transaction: OwnTransaction } & Tracked)
  /** The last check predicts that it would fail: nothing was recorded or sent. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: 'unsent'; readonly detail: string }
  /** The transaction was handed to the node, which gave no answer. */
  | { readonly kind: 'unknown'; readonly transaction: OwnTransaction }

/** This signer is unavailable, another may not be: nothing was recorded or sent. */
export interface SignerBusy {
  readonly kind: 'busy'
  readonly detail: string
}

/** Whether a signer answers at once when it is busy, or waits for other processes and reads its balance again. */
export type WaitMode = 'at once' | 'patiently'

export const IN_USE: SignerBusy = { kind: 'busy', detail: 'the signer is in use by another process' }
export const NO_GAS: SignerBusy = {
  kind: 'busy',
  detail: 'the service cannot pay the fees of the network now',
}
/** The result of a check when the node reports that the sender cannot pay for the gas. */
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
export const GAS_LOST: SendResult = {
  kind: 'unsent',
  detail: 'too many transactions have failed on this network lately',
}
export const NOT_TAKEN: SendResult = { kind: 'unsent', detail: 'the network refuses the transaction' }

/** A request in the queue of a signer. */
export interface Waiting {
  readonly request: TransactionRequest
  readonly mode: WaitMode
  readonly resolve: (result: SendResult | SignerBusy) => void
  readonly reject: (fault: unknown) => void
  /** When its check passed outside of a batch, in milliseconds since the epoch. */
  readonly checkedAt?: number
  /** How often another transaction was found to have its nonce. */
  readonly displaced: number
}

/** A request whose cost the account can pay. */
export interface Ready extends Waiting {
  readonly price: Bid
}

/** A transaction that is ready for its signature: of one request, or a batch of several. */
export interface Submission {
  readonly members: readonly Ready[]
  readonly call: TransactionCall
  readonly price: Bid
}

export interface Signed extends Submission {
  readonly transaction: OwnTransaction & { readonly raw: `0x${string}` }
}
