import { hash } from 'node:crypto'
import type { PaymentRecord } from './payment-record.ts'

/** What payments are looked for by. */
export type SearchTerm =
  | { readonly kind: 'payer'; readonly payer: string }
  /** Of the settlement or of a refund. */
  | { readonly kind: 'transaction'; readonly transaction: string }

/** Where a page of payments ends: the next one begins with older payments. */
export type SearchPlace = Pick<PaymentRecord, 'createdAt' | 'id'>

/** The names under which the index has a term: digests, which are short. */
export function searchName(term: SearchTerm): string {
  const text = term.kind === 'payer' ? `payer ${term.payer}` : `transaction ${term.transaction}`
  return hash('sha256', text, 'base64url').slice(0, 12)
}

/** The names under which a payment is found. */
export function searchNames(record: PaymentRecord | undefined): readonly string[] {
  return searchTerms(record).map(searchName)
}

function searchTerms(record: PaymentRecord | undefined): SearchTerm[] {
  if (record === undefined) return []
  const { payer, receipt, dispatch, refund } = record
  const sent = dispatch?.kind === 'own' || dispatch?.kind === 'payer' ? dispatch.hash : undefined
  const returned = refund === undefined || refund.kind === 'due' ? undefined : refund.hash
  const transactions = new Set([receipt?.transaction, sent, returned])
  return [
    { kind: 'payer', payer },
    ...Array.from(transactions).flatMap((transaction): SearchTerm[] =>
      transaction === undefined || transaction === '' ? [] : [{ kind: 'transaction', transaction }],
    ),
  ]
}

/** Whether a found payment is one that was looked for: digests may be equal. */
export function fitsSearch(record: PaymentRecord, term: SearchTerm | undefined): boolean {
  return (
    term === undefined || searchTerms(record).some((each) => JSON.stringify(each) === JSON.stringify(term))
  )
}
