import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import type { Charge } from './money.ts'
import type { Note } from './office.ts'
import type { Verdict } from './verdict.ts'

/** How the storm has ended, counted from the chain, the buyers’ notes and the office; the ledger only speaks for itself. */
export interface Tally {
  /** Things wanted, each of them once. */
  readonly wanted: number
  readonly signed: number
  readonly charges: number
  readonly fetched: number
  readonly runs: number
  /** Charged, and never fetched. */
  readonly lost: number
  /** Charged more than once. */
  readonly doubled: number
  /** Fetched by an answer that was paid for before, and was not known to have arrived: proved for each. */
  readonly again: number
  /** Fetched, never charged, and not proved to be such an answer: a present. */
  readonly uncharged: number
  /** Charged and fetched, with a receipt for something else: what was paid for may never have come. */
  readonly crossed: number
  /** Charges no want can explain. */
  readonly strange: number
  /** Entries whose end the ledger does not know. */
  readonly unresolved: number
  /** Charges the ledger does not know of, and those it only imagines. */
  readonly misbooked: number
  /** Kept for payments that were not charged, or not kept for ones that were. */
  readonly miskept: number
}

export interface Evidence {
  readonly verdicts: readonly Verdict[]
  /** The payments that have moved money. */
  readonly charges: readonly Charge[]
  readonly entries: readonly PaymentRecord[]
  readonly markOfKey: (key: string) => string
  readonly runs: number
  readonly notes: ReadonlyMap<string, Note>
}

export function count({ verdicts, charges, entries, markOfKey, runs, notes }: Evidence): Tally {
  const amount = (holds: (verdict: Verdict) => boolean): number => verdicts.filter(holds).length
  const booked = entries.filter(({ receipt }) => receipt !== undefined)
  const charged = new Set(booked.map(({ id }) => id))
  return {
    wanted: verdicts.length,
    signed: verdicts.reduce((sum, { want }) => sum + want.payments.size, 0),
    charges: charges.length,
    fetched: amount(({ proof }) => proof !== undefined),
    runs,
    lost: amount(isLost),
    doubled: amount(isDoubled),
    again: amount(isAgain),
    uncharged: amount(isUncharged),
    crossed: amount(isCrossed),
    strange: charges.length - verdicts.reduce((sum, verdict) => sum + verdict.charges.length, 0),
    unresolved: entries.filter(({ state }) => state === 'settling' || state === 'unknown').length,
    misbooked: misbookedIn({ charges, entries, markOfKey }).length,
    miskept: [...notes].filter(([id, note]) => (note === 'committed') !== charged.has(id)).length,
  }
}

/** Charges without a record that names their transaction, and records of charges that are not on the chain. */
export function misbookedIn({
  charges,
  entries,
  markOfKey,
}: Pick<Evidence, 'charges' | 'entries' | 'markOfKey'>): string[] {
  const booked = entries.filter(({ receipt }) => receipt !== undefined)
  const proofOf = (mark: string, transaction: string | undefined): string => `${mark} ${transaction ?? ''}`
  const onChain = new Set(charges.map(({ mark, transaction }) => proofOf(mark, transaction)))
  const inLedger = new Set(booked.map(({ key, receipt }) => proofOf(markOfKey(key), receipt?.transaction)))
  return [
    ...[...onChain].filter((proof) => !inLedger.has(proof)).map((proof) => `on the chain only: ${proof}`),
    ...[...inLedger].filter((proof) => !onChain.has(proof)).map((proof) => `in the ledger only: ${proof}`),
  ]
}

export function isLost({ charges, proof }: Verdict): boolean {
  return proof === undefined && charges.length > 0
}

export function isDoubled({ charges }: Verdict): boolean {
  return charges.length > 1
}

export function isAgain({ charges, proof }: Verdict): boolean {
  return charges.length === 0 && proof?.kind === 'again'
}

export function isUncharged({ charges, proof }: Verdict): boolean {
  return charges.length === 0 && proof !== undefined && proof.kind !== 'again'
}

export function isCrossed({ charges, proof }: Verdict): boolean {
  return charges.length > 0 && proof !== undefined && proof.kind !== 'own'
}

export function isLeft({ charges, proof }: Verdict): boolean {
  return charges.length === 0 && proof === undefined
}

/** Whether nothing is left to be done but to forget. */
export function isQuiet(entries: readonly PaymentRecord[]): boolean {
  return entries.every(
    ({ state, pendingWrite: prepared, receipt }) =>
      state !== 'settling' && state !== 'unknown' && (prepared === undefined || receipt === undefined),
  )
}
