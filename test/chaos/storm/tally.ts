import type { Entry } from '../../../src/engine/ledger/entry.ts'
import type { Diary } from './diary.ts'
import type { Note } from './office.ts'

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
  /** Fetched, and never charged: bought twice by the same buyer and given twice, or a present. */
  readonly uncharged: number
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
  readonly diary: Diary
  /** Marks of the payments that have moved money. */
  readonly charges: readonly string[]
  readonly entries: readonly Entry[]
  readonly markOfKey: (key: string) => string
  readonly runs: number
  readonly notes: ReadonlyMap<string, Note>
}

export function count({ diary, charges, entries, markOfKey, runs, notes }: Evidence): Tally {
  const times = new Map<string, number>()
  for (const mark of charges) times.set(mark, (times.get(mark) ?? 0) + 1)
  const chargesOf = diary.wants.map(({ marks }) =>
    [...marks].reduce((sum, mark) => sum + (times.get(mark) ?? 0), 0),
  )
  const amount = (holds: (fetched: boolean, charged: number) => boolean): number =>
    diary.wants.filter(({ fetched }, place) => holds(fetched, chargesOf[place] ?? 0)).length
  const booked = entries.filter(({ receipt }) => receipt !== undefined)
  const charged = new Set(booked.map(({ id }) => id))
  const known = booked.filter(({ key }) => times.has(markOfKey(key)))
  return {
    wanted: diary.wants.length,
    signed: diary.wants.reduce((sum, { marks }) => sum + marks.size, 0),
    charges: charges.length,
    fetched: amount((fetched) => fetched),
    runs,
    lost: amount((fetched, charge) => !fetched && charge > 0),
    doubled: amount((_, charge) => charge > 1),
    uncharged: amount((fetched, charge) => fetched && charge === 0),
    strange: charges.length - chargesOf.reduce((sum, each) => sum + each, 0),
    unresolved: entries.filter(({ state }) => state === 'settling' || state === 'unknown').length,
    misbooked: charges.length - known.length + (booked.length - known.length),
    miskept: [...notes].filter(([id, note]) => (note === 'committed') !== charged.has(id)).length,
  }
}

/** Whether nothing is left to be done but to forget. */
export function isQuiet(entries: readonly Entry[]): boolean {
  return entries.every(
    ({ state, prepared, receipt }) =>
      state !== 'settling' && state !== 'unknown' && (prepared === undefined || receipt === undefined),
  )
}
