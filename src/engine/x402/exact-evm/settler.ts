import type { Dispatch } from '../../ledger/payment-record.ts'
import type { Refusal } from '../../base/errors.ts'
import type { Journal, Settlement } from '../../payment/settlement.ts'
import type { SettlementRequest } from './settlement-request.ts'
import type { ExpectedPayment } from '../../chains/evm/transfer-proof.ts'

/** The settlement of one network: by a signer of this process, or a facilitator. */
export interface Settler {
  /** Whether a contract wallet accepts a signature that no key has made; `digest` is the signed message. */
  verifyContract(request: SettlementRequest, digest: Uint8Array): Promise<Refusal | undefined>
  /** Whether the token would carry the authorization out now. */
  simulate(request: SettlementRequest): Promise<Refusal | undefined>
  /** The HTTP request has ended: frees what `simulate` has reserved. */
  release(request: SettlementRequest): void
  settle(request: SettlementRequest, journal: Journal): Promise<Settlement>
  /**
   * Finds the outcome of a payment; `dispatch` is what was sent for it. `end`: from when on it has failed if it is
   * unused; `since`: when it arrived; both in milliseconds since the epoch.
   */
  resolve(
    expected: ExpectedPayment,
    dispatch: Dispatch | undefined,
    end: number,
    since: number,
  ): Promise<Settlement>
  /** Sends the recorded bytes again: the same as before, and nothing else. */
  readonly resend?: (dispatch: Dispatch | undefined) => Promise<void>
  /**
   * Carries an authorization out by itself whose transaction can never be mined any more. Failed when the signed
   * authorization was not kept: only the one that has sent it can do so.
   */
  readonly resettle?: (
    expected: ExpectedPayment,
    dispatch: Dispatch | undefined,
    journal: Journal,
  ) => Promise<Settlement>
}
