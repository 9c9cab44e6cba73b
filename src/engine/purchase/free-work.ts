import type { PaymentRecord } from '../ledger/payment-record.ts'
import type { Settlement } from '../payment/settlement.ts'

/** The settlement of work that is done and costs nothing: no scheme is asked to move money for it. */
export function settlementOfFreeWork(record: PaymentRecord): Settlement | undefined {
  const { amount, answer, dispatch, network, payer } = record
  if (amount !== '0' || answer === undefined || dispatch !== undefined) return undefined
  return { kind: 'settled', receipt: { transaction: '', network, payer, amount } }
}
