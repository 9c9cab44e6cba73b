import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import type { PurchaseOutcome } from './match-charges.ts'
import type { Charge, PaymentMethod } from './payment-method.ts'
import type { Effect, WriteState } from './upstream.ts'

/** The result of a run, counted from the chain, the buyers’ log and the upstream, and compared with the ledger. */
export interface Totals {
  readonly purchases: number
  readonly signed: number
  readonly charges: number
  readonly transactions: number
  readonly answered: number
  readonly runs: number
  /** Purchases that were charged and never answered. */
  readonly lost: number
  /** Purchases that were charged more than once. */
  readonly doubleCharged: number
  /** Purchases that got the undelivered answer of an earlier payment, proved for each, and were not charged. */
  readonly redelivered: number
  /** Purchases that were answered without a charge, and not by such a redelivery. */
  readonly unpaid: number
  /** Purchases that were charged and answered, with the receipt of another purchase: their own answer may be lost. */
  readonly wrongReceipts: number
  /** Purchases that were charged by another transaction than the one in their receipt, which a reorganization has undone. */
  readonly undoneReceipts: number
  /** Purchases with a charge of another amount than the price of the call. */
  readonly wrongAmounts: number
  /** Charges that belong to no purchase. */
  readonly unknownCharges: number
  /** Payment records without a known outcome. */
  readonly unresolved: number
  /** Charges that the ledger lacks, and charges that only the ledger has. */
  readonly ledgerMismatches: number
  /** Writes committed for uncharged payments, or not committed for charged ones. */
  readonly writeMismatches: number
  /** Calls with effects that took place, each under its own idempotency key. */
  readonly effects: number
  /** Further calls with the key of an effect. */
  readonly repeated: number
  /** Calls with effects that lacked a key of their own. */
  readonly unkeyed: number
  /** Charged calls with effects that never reached the upstream. */
  readonly withoutEffect: number
}

export interface Evidence {
  readonly outcomes: readonly PurchaseOutcome[]
  /** Every payment that moved money. */
  readonly charges: readonly Charge[]
  readonly records: readonly PaymentRecord[]
  readonly method: Pick<PaymentMethod, 'referenceOfKey' | 'transactionOf' | 'broadcastsOf' | 'standingOf'>
  readonly runs: number
  readonly writes: ReadonlyMap<string, WriteState>
  readonly effects: ReadonlyMap<string, Effect>
  readonly unkeyed: number
}

export function countTotals(evidence: Evidence): Totals {
  const { outcomes, charges, records, runs, writes, effects, unkeyed } = evidence
  const count = (holds: (outcome: PurchaseOutcome) => boolean): number => outcomes.filter(holds).length
  const charged = records.filter(({ receipt }) => receipt !== undefined)
  const chargedIds = new Set(charged.map(({ id }) => id))
  return {
    purchases: outcomes.length,
    signed: outcomes.reduce((sum, { purchase }) => sum + purchase.payments.size, 0),
    charges: charges.length,
    transactions: new Set(charges.map(({ transaction }) => transaction)).size,
    answered: count(({ receipt }) => receipt !== undefined),
    runs,
    lost: count(isLost),
    doubleCharged: count(isDoubleCharged),
    redelivered: count(isRedelivered),
    unpaid: count(isUnpaid),
    wrongReceipts: count(hasWrongReceipt),
    undoneReceipts: count(hasUndoneReceipt),
    wrongAmounts: count(hasWrongAmount),
    unknownCharges: charges.length - outcomes.reduce((sum, outcome) => sum + outcome.charges.length, 0),
    unresolved: records.filter(({ state }) => state === 'settling' || state === 'unknown').length,
    ledgerMismatches: ledgerMismatches(evidence).length,
    writeMismatches: [...writes].filter(([id, state]) => (state === 'committed') !== chargedIds.has(id))
      .length,
    effects: effects.size,
    repeated: [...effects.values()].reduce((sum, { requests }) => sum + requests - 1, 0),
    unkeyed,
    withoutEffect: charged.filter(({ id, operation }) => operation.startsWith('post/') && !effects.has(id))
      .length,
  }
}

/** Charges without a record that names their transaction and amount, and records of charges that are not on the chain. */
export function ledgerMismatches({
  charges,
  records,
  method: { referenceOfKey, transactionOf },
}: Pick<Evidence, 'charges' | 'records' | 'method'>): string[] {
  const onChain = new Set(
    charges.map(({ reference, transaction, amount }) => `${reference} ${transaction} ${amount}`),
  )
  const inLedger = new Set(
    records.flatMap(({ key, amount, receipt }) => {
      if (receipt === undefined) return []
      const moved = receipt.amount === amount ? amount : `${receipt.amount}, with an answer for ${amount}`
      return [`${referenceOfKey(key)} ${transactionOf(receipt)} ${moved}`]
    }),
  )
  return [
    ...[...onChain].filter((each) => !inLedger.has(each)).map((each) => `on the chain only: ${each}`),
    ...[...inLedger].filter((each) => !onChain.has(each)).map((each) => `in the ledger only: ${each}`),
  ]
}

export function isLost({ charges, receipt }: PurchaseOutcome): boolean {
  return receipt === undefined && charges.length > 0
}

export function isDoubleCharged({ charges }: PurchaseOutcome): boolean {
  return charges.length > 1
}

export function isRedelivered({ charges, receipt }: PurchaseOutcome): boolean {
  return charges.length === 0 && receipt?.kind === 'redelivered'
}

export function isUnpaid({ charges, receipt }: PurchaseOutcome): boolean {
  return charges.length === 0 && receipt !== undefined && receipt.kind !== 'redelivered'
}

export function hasWrongReceipt({ charges, receipt }: PurchaseOutcome): boolean {
  return charges.length > 0 && receipt !== undefined && receipt.kind !== 'own' && receipt.kind !== 'undone'
}

export function hasUndoneReceipt({ charges, receipt }: PurchaseOutcome): boolean {
  return charges.length > 0 && receipt?.kind === 'undone'
}

export function hasWrongAmount({ charges, purchase: { route, n } }: PurchaseOutcome): boolean {
  return charges.some(({ amount }) => amount !== route.price(n))
}

export function isUnanswered({ charges, receipt }: PurchaseOutcome): boolean {
  return charges.length === 0 && receipt === undefined
}

/** Whether every payment is resolved and every pending write of a charged payment is finished. */
export function isSettled(records: readonly PaymentRecord[]): boolean {
  return records.every(
    ({ state, pendingWrite, receipt }) =>
      state !== 'settling' && state !== 'unknown' && (pendingWrite === undefined || receipt === undefined),
  )
}
