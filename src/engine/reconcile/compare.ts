import { sameAddress } from '../base/address.ts'
import { findSvmNetwork } from '../base/networks.ts'
import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { BlockRange } from '../chains/evm/event-log.ts'
import type { OnchainStatus, OnchainPayment } from '../payment/reconcile-source.ts'

/** A difference between ledger and chain; records without their answers. */
export type Difference =
  /** Charged by the ledger, without such a transfer on the chain. */
  | { readonly kind: 'missing_on_chain'; readonly record: PaymentRecord; readonly status: OnchainStatus }
  /** A payment has come in that the ledger does not have. */
  | { readonly kind: 'not_in_ledger'; readonly payment: OnchainPayment }
  /** A payment has come in that the ledger has as uncharged. */
  | { readonly kind: 'not_booked'; readonly record: PaymentRecord; readonly payment: OnchainPayment }
  /** Both have the payment, with different values. */
  | {
      readonly kind: 'differs'
      readonly record: PaymentRecord
      readonly payment: OnchainPayment
      readonly fields: readonly Field[]
    }
  /** The outcome has been unknown to the ledger for long; `status` is the chain's. */
  | { readonly kind: 'unresolved'; readonly record: PaymentRecord; readonly status: OnchainStatus }

  /** Refunded or being refunded by the ledger, without such a refund on the chain. */
  | { readonly kind: 'refund_missing'; readonly record: PaymentRecord }
  /** The money was sent back, and the ledger does not know that it has arrived. */
  | { readonly kind: 'refund_not_booked'; readonly record: PaymentRecord }

export type Field = 'amount' | 'payer' | 'payee' | 'transaction'

/** The result for one token on one network. */
export type Statement = Checked | Unchecked

export interface Checked {
  readonly kind: 'checked'
  readonly protocol: string
  readonly network: string
  readonly asset: string
  readonly payees: readonly string[]
  /** Undefined where the chain was searched by time. */
  readonly span: BlockRange | undefined
  /** Payments on which both agree. */
  readonly agreed: number
  /** Payments that are being processed now. */
  readonly underway: number
  /** Money that has come in without being a payment. */
  readonly transfers: Sum
  /** Owed refunds of any age, and refunds within the examined period. */
  readonly refunds: { readonly due: Sum; readonly sent: Sum }
  readonly differences: readonly Difference[]
}

export interface Sum {
  readonly count: number
  readonly amount: bigint
}

interface Unchecked {
  readonly kind: 'unchecked'
  readonly protocol: string
  readonly network: string
  readonly asset: string
  /** For the operator: what is missing. */
  readonly reason: string
}

/** A healthy payment is settled or given up long before. */
const STALE_MS = 600_000
/** Nodes behind one address may be at different blocks, so newer transfers may not be on each of them. */
const FRESH_MS = 60_000

export type Verdict = { readonly kind: 'agreed' } | { readonly kind: 'underway' } | Difference

const AGREED: Verdict = { kind: 'agreed' }
const UNDERWAY: Verdict = { kind: 'underway' }

/** Compares a payment that the chain shows with its record. */
export function comparePayment(
  payment: OnchainPayment,
  record: PaymentRecord | undefined,
  now: number,
): Verdict {
  if (record === undefined) return { kind: 'not_in_ledger', payment }
  if (record.receipt !== undefined) return compare(payment, record)
  switch (record.state) {
    case 'settling':
    case 'unknown':
      return isStale(record, now)
        ? { kind: 'unresolved', record: bare(record), status: { kind: 'moved', payment } }
        : UNDERWAY
    case 'voided':
      return { kind: 'not_booked', record: bare(record), payment }
    default:
      return record.leaseUntil > now ? UNDERWAY : { kind: 'not_booked', record: bare(record), payment }
  }
}

/** A refund that was sent, or may have been; `isShown`: its transaction shows it. Undefined: both agree. */
export function compareRefund(record: PaymentRecord, isShown: boolean): Difference | undefined {
  if (!isShown) return { kind: 'refund_missing', record: bare(record) }
  return record.refund?.kind === 'sent' ? undefined : { kind: 'refund_not_booked', record: bare(record) }
}

/** Whether the chain has to be asked for a payment that it has not shown by itself. */
export function isQuestionable({ receipt, state }: PaymentRecord): boolean {
  // A charge of zero has no transaction.
  if (receipt !== undefined) return receipt.transaction !== ''
  return state === 'settling' || state === 'unknown'
}

/** Compares a questionable record with the present state of the chain. */
export function compareEntry(record: PaymentRecord, status: OnchainStatus, now: number): Verdict {
  const { receipt, settledAt = 0 } = record
  if (receipt === undefined)
    return isStale(record, now) ? { kind: 'unresolved', record: bare(record), status } : UNDERWAY
  if (status.kind === 'moved') return compare(status.payment, record)
  return settledAt > now - FRESH_MS ? UNDERWAY : { kind: 'missing_on_chain', record: bare(record), status }
}

function isStale({ createdAt }: PaymentRecord, now: number): boolean {
  return createdAt < now - STALE_MS
}

function compare(payment: OnchainPayment, record: PaymentRecord): Verdict {
  const { receipt, payee, network } = record
  const amount = payment.amount.toString()
  // Letter case is part of what Solana writes in base58.
  const isSame =
    findSvmNetwork(network) === undefined ? sameAddress : (a: string, b: string): boolean => a === b
  const same: Record<Field, boolean> = {
    amount: record.amount === amount && receipt?.amount === amount,
    payer: [record.payer, receipt?.payer].every((payer) => isSame(payer ?? '', payment.payer)),
    payee: isSame(payee, payment.payee),
    transaction: isSame(receipt?.transaction ?? '', payment.transaction),
  }
  const fields = FIELDS.filter((field) => !same[field])
  return fields.length === 0 ? AGREED : { kind: 'differs', record: bare(record), payment, fields }
}

const FIELDS: readonly Field[] = ['amount', 'payer', 'payee', 'transaction']

/** Without the answer, which may be large and is not needed. */
function bare({ answer: _answer, ...record }: PaymentRecord): PaymentRecord {
  return record
}
