import { inSpan, type Tracing } from '../base/tracing.ts'
import type { Ledger } from './ledger.ts'

/** The same ledger, which shows each write of a payment. */
export function traceLedger(ledger: Ledger, tracing: Tracing | undefined): Ledger {
  if (tracing === undefined) return ledger
  const traced = <T>(changes: number, write: () => Promise<T>): Promise<T> =>
    inSpan(tracing, 'ledger commit', { 'ratecard.ledger': ledger.name, 'ratecard.changes': changes }, write)
  return {
    ...ledger,
    commit: (changes, states) => traced(changes.length, () => ledger.commit(changes, states)),
    insert: (record) => traced(1, () => ledger.insert(record)),
    replace: (previous, next) => traced(1, () => ledger.replace(previous, next)),
    replaceSoon: (previous, next) => traced(1, () => ledger.replaceSoon(previous, next)),
    remove: (record) => traced(1, () => ledger.remove(record)),
  }
}
