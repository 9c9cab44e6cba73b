import type { Block } from './chain.ts'
import { containsTransfer } from './eip3009/authorization-log.ts'
import { authorizationOutcome } from './eip3009/authorization-outcome.ts'
import type { ExpectedTransfer } from './eip3009/token-state.ts'
import type { Log } from './event-log.ts'
import { permitOutcome, permitOutcomeOfAnyAmount, showsTransfer } from './permit2/permit-outcome.ts'
import type { ConfirmedChain, TransferOutcome } from './transfer-outcome.ts'

/** How a chain shows that a transfer was carried out: this differs by what its payer has signed. */
export interface TransferProof {
  /** The contract that keeps account of used nonces: two of them may get the same nonce of one payer. */
  readonly nonces: 'token' | 'permit2'
  /** Whether the logs of a transaction that was to carry it out show it. */
  readonly contains: (logs: readonly Log[], expected: ExpectedTransfer) => boolean
  /** What became of it, by a transaction of any account: see `authorizationOutcome`. */
  readonly outcome: (
    confirmed: ConfirmedChain,
    expected: ExpectedTransfer,
    since: number,
    isVoid: (block: Block) => boolean | Promise<boolean>,
  ) => Promise<TransferOutcome | undefined>
}

/** Of EIP-3009. */
export const BY_AUTHORIZATION: TransferProof = {
  nonces: 'token',
  contains: containsTransfer,
  outcome: authorizationOutcome,
}

/** Of Permit2. */
export const BY_PERMIT: TransferProof = {
  nonces: 'permit2',
  contains: showsTransfer,
  outcome: permitOutcome,
}

/** Of Permit2, where somebody else chooses the amount. */
export const BY_PERMIT_OF_OTHERS: TransferProof = { ...BY_PERMIT, outcome: permitOutcomeOfAnyAmount }

/** What must have happened on chain for a payment to be settled, and how the chain shows it. */
export interface ExpectedPayment extends ExpectedTransfer {
  readonly proof: TransferProof
}

/** Tells what one payer has signed apart, whatever it was signed for. */
export function nonceName({ proof: { nonces }, nonce }: ExpectedPayment): string {
  return `${nonces}:${nonce}`
}
