import type { Clock } from '../base/poll.ts'
import type { PaymentLease } from '../ledger/lease.ts'
import type { Refund } from '../ledger/payment-record.ts'

export type RefundResult =
  | { readonly kind: 'sent'; readonly hash: string }
  /** Nothing was sent now. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Sent, and in no block yet: run again, it is never sent twice. */
  | { readonly kind: 'unconfirmed'; readonly hash: string }

/** A refund whose transaction was recorded, and may have been broadcast. */
export type SentRefund = Exclude<Refund, { readonly kind: 'due' }>

export type Refused = Extract<RefundResult, { readonly kind: 'refused' }>

export function refused(reason: string): Refused {
  return { kind: 'refused', reason }
}

export function refundedBefore({ hash }: SentRefund): Refused {
  return refused(`it was refunded before, in ${hash}`)
}

/** Records that a block contains a refund. */
export async function finish(
  { now }: Pick<Clock, 'now'>,
  lease: PaymentLease,
  shown: Omit<SentRefund, 'kind'>,
): Promise<RefundResult> {
  await lease.refund({ sentAt: now(), ...shown, kind: 'sent' })
  return { kind: 'sent', hash: shown.hash }
}
