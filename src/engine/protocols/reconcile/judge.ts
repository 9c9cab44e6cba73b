import { sameAddress } from '../../address.ts'
import type { Entry } from '../../ledger/entry.ts'
import type { Difference, Field } from './statement.ts'
import type { Fate, Sighting } from './trail.ts'

/** A healthy payment is settled or given up long before. */
const STALE_MS = 600_000
/** Nodes behind one address are not all at the same block: what is as new as this may not show on every one of them. */
const FRESH_MS = 60_000

export type Verdict = { readonly kind: 'agreed' } | { readonly kind: 'underway' } | Difference

const AGREED: Verdict = { kind: 'agreed' }
const UNDERWAY: Verdict = { kind: 'underway' }

/** A payment that the chain shows, beside what the ledger has of it. */
export function judgeSighting(sighting: Sighting, entry: Entry | undefined, now: number): Verdict {
  if (entry === undefined) return { kind: 'not_in_ledger', sighting }
  if (entry.receipt !== undefined) return compare(sighting, entry)
  switch (entry.state) {
    case 'settling':
    case 'unknown':
      return isStale(entry, now)
        ? { kind: 'unresolved', entry: bare(entry), fate: { kind: 'moved', sighting } }
        : UNDERWAY
    case 'voided':
      return { kind: 'not_booked', entry: bare(entry), sighting }
    default:
      return entry.leaseUntil > now ? UNDERWAY : { kind: 'not_booked', entry: bare(entry), sighting }
  }
}

/** Whether the chain has to be asked for an entry that it has not shown by itself. */
export function isQuestionable({ receipt, state }: Entry): boolean {
  return receipt !== undefined || state === 'settling' || state === 'unknown'
}

/** A questionable entry, and what the chain says when it is asked for it. */
export function judgeEntry(entry: Entry, fate: Fate, now: number): Verdict {
  const { receipt, settledAt = 0 } = entry
  if (receipt === undefined)
    return isStale(entry, now) ? { kind: 'unresolved', entry: bare(entry), fate } : UNDERWAY
  if (fate.kind === 'moved') return compare(fate.sighting, entry)
  return settledAt > now - FRESH_MS ? UNDERWAY : { kind: 'missing_on_chain', entry: bare(entry), fate }
}

function isStale({ createdAt }: Entry, now: number): boolean {
  return createdAt < now - STALE_MS
}

function compare(sighting: Sighting, entry: Entry): Verdict {
  const { receipt, payee } = entry
  const amount = sighting.amount.toString()
  const same: Record<Field, boolean> = {
    amount: entry.amount === amount && receipt?.amount === amount,
    payer: [entry.payer, receipt?.payer].every((payer) => sameAddress(payer ?? '', sighting.payer)),
    payee: sameAddress(payee, sighting.payee),
    transaction: receipt?.transaction.toLowerCase() === sighting.transaction.toLowerCase(),
  }
  const fields = FIELDS.filter((field) => !same[field])
  return fields.length === 0 ? AGREED : { kind: 'differs', entry: bare(entry), sighting, fields }
}

const FIELDS: readonly Field[] = ['amount', 'payer', 'payee', 'transaction']

/** Answers may be large, and nobody reads them here. */
function bare({ answer: _answer, ...entry }: Entry): Entry {
  return entry
}
