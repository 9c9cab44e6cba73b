import { inSpan, type Tracing } from '../base/tracing.ts'
import type { Ledger } from './ledger.ts'

/** The same ledger, which shows each write of a payment. */
export function traceLedger(ledger: Ledger, tracing: Tracing | undefined): Ledger {
  if (tracing === undefined) return ledger
  const commit: Ledger['commit'] = (changes, states) =>
    inSpan(
      tracing,
      'ledger commit',
      { 'ratecard.ledger': ledger.name, 'ratecard.changes': changes.length },
      () => ledger.commit(changes, states),
    )
  return {
    ...ledger,
    commit,
    insert: (record) =>
      inSpan(tracing, 'ledger commit', { 'ratecard.ledger': ledger.name, 'ratecard.changes': 1 }, () =>
        ledger.insert(record),
      ),
    replace: (previous, next) => commit([{ previous, next }]),
    remove: (record) => commit([{ previous: record, next: undefined }]),
  }
}
