import type { Refusal } from '../base/errors.ts'
import type { JointCommit } from '../ledger/joint-commit.ts'
import type { BlockReference, Receipt, Dispatch } from '../ledger/payment-record.ts'

/** Records each step of a settlement before it is taken. */
export interface Journal {
  /** `joint`: the commit that stores it together with others. */
  record(dispatch: Dispatch, joint?: JointCommit): Promise<void>
}

/** Three outcomes: an unknown outcome is not a failure. */
export type Settlement =
  | { readonly kind: 'settled'; readonly receipt: Receipt }
  /**
   * `block`: the one that shows it. While that can be undone, what was sent may be carried out after all; undefined when
   * nothing was sent.
   */
  | { readonly kind: 'failed'; readonly refusal: Refusal; readonly block?: BlockReference }
  | { readonly kind: 'unknown'; readonly detail: string }

/** Sent, and not seen in a block so far. */
export const UNCONFIRMED: Settlement = {
  kind: 'unknown',
  detail: 'the network has not confirmed the payment yet',
}

export const SETTLEMENT_FAILED: Extract<Settlement, { readonly kind: 'failed' }> = {
  kind: 'failed',
  refusal: { code: 'settlement_failed', detail: 'the transfer was not carried out; nothing was charged' },
}
