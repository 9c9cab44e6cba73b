import type { Refusal } from '../../base/errors.ts'
import { weiOf } from '../../chains/svm/spent-fees.ts'
import type { PaymentRecord } from '../../ledger/payment-record.ts'
import { SETTLEMENT_FAILED, type Journal, type Settlement } from '../../payment/settlement.ts'
import type { PaymentPayload } from '../payload.ts'
import { requirementsFor, type Requirements } from '../requirements.ts'
import type { SchemeOffer } from '../scheme.ts'
import { svmOfferOf, type AcceptedSvmNetwork } from './svm-offer.ts'
import { encodeTransaction, type SvmPayload } from './svm-payload.ts'

/** A payment to settle: one object for its whole life. */
export interface SvmRequest extends SvmPayload {
  /** For a facilitator: our offer, and what was signed. */
  readonly requirements: Requirements
  readonly payload: PaymentPayload<object>
  /** Id of the operation that a facilitator may list; undefined when none is named to it. */
  readonly operation: string | undefined
  /** Milliseconds since the epoch, at or after which it is not awaited any more. */
  readonly validBefore: number
}

/** The settlement of one Solana network: by an account of this process, or a facilitator. */
export interface SvmSettler {
  /** Whether it would be carried out now. */
  simulate(request: SvmRequest): Promise<Refusal | undefined>
  /** The request has ended: frees what `simulate` has reserved. */
  release(request: SvmRequest): void
  settle(request: SvmRequest, journal: Journal): Promise<Settlement>
  /** Finds the outcome of a payment from its record. */
  resolve(record: PaymentRecord): Promise<Settlement>
  /** Sends the recorded bytes again: the same as before, and nothing else. */
  readonly resend?: (record: PaymentRecord) => Promise<void>
}

/**
 * Makes the request from our offer and what was signed: members that a buyer has added, or echoed differently, are left
 * out. `sold` is what is bought, once it is known.
 */
export function svmRequestOf(
  accepted: AcceptedSvmNetwork,
  payment: SvmPayload,
  validBefore: number,
  sold?: Pick<SchemeOffer, 'settle' | 'listed'>,
): SvmRequest {
  const { settle = 'after', listed } = sold ?? {}
  const { transfer, transaction } = payment
  const offer = svmOfferOf({ ...accepted, feePayer: transfer.feePayer })
  const requirements = requirementsFor(offer, transfer.amount.toString(), settle)
  return {
    ...payment,
    validBefore,
    requirements,
    payload: {
      x402Version: 2,
      ...(listed === undefined ? {} : { resource: { ...listed.resource, url: listed.url } }),
      accepted: requirements,
      payload: { transaction: encodeTransaction(transaction) },
      ...(listed === undefined ? {} : { extensions: listed.extensions }),
    },
    operation: listed?.operation,
  }
}

/** The proof that a payment was carried out by a transaction. `fee`: lamports that an account of ours has paid for it. */
export function svmSettled(
  { network, payer, amount }: Pick<PaymentRecord, 'network' | 'payer' | 'amount'>,
  transaction: string,
  fee?: bigint,
): Settlement {
  const paid = fee === undefined ? {} : { gasCost: weiOf(fee).toString() }
  return { kind: 'settled', receipt: { transaction, network, payer, amount, ...paid } }
}

/** Nothing can carry it out any more. */
export const EXPIRED: Settlement = {
  kind: 'failed',
  refusal: {
    ...SETTLEMENT_FAILED.refusal,
    detail: 'the transaction was in no block before its blockhash expired; nothing was charged',
  },
}

/** Nobody has been given what could move the money. */
export const NOT_SENT: Settlement = {
  kind: 'failed',
  refusal: { ...SETTLEMENT_FAILED.refusal, detail: 'the transaction was not sent; nothing was charged' },
}
