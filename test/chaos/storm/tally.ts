import type { Entry } from '../../../src/engine/ledger/entry.ts'
import type { Use } from '../../support/base-chain.ts'
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
  readonly uses: readonly Use[]
  readonly entries: readonly Entry[]
  readonly runs: number
  readonly notes: ReadonlyMap<string, Note>
}

export function count({ diary, uses, entries, runs, notes }: Evidence): Tally {
  const used = new Map(uses.map((use) => [use.nonce.toLowerCase(), use]))
  const charges = diary.wants.map(
    ({ nonces }) => nonces.filter((nonce) => used.has(nonce.toLowerCase())).length,
  )
  const explained = charges.reduce((sum, each) => sum + each, 0)
  const amount = (holds: (fetched: boolean, charged: number) => boolean): number =>
    diary.wants.filter(({ fetched }, place) => holds(fetched, charges[place] ?? 0)).length
  const booked = entries.filter(({ receipt }) => receipt !== undefined)
  const charged = new Set(booked.map(({ id }) => id))
  const known = booked.filter(({ key }) => used.has(key.slice(key.lastIndexOf(':') + 1)))
  return {
    wanted: diary.wants.length,
    signed: diary.wants.reduce((sum, { nonces }) => sum + nonces.length, 0),
    charges: uses.length,
    fetched: amount((fetched) => fetched),
    runs,
    lost: amount((fetched, charge) => !fetched && charge > 0),
    doubled: amount((_, charge) => charge > 1),
    uncharged: amount((fetched, charge) => fetched && charge === 0),
    strange: uses.length - explained,
    unresolved: entries.filter(({ state }) => state === 'settling' || state === 'unknown').length,
    misbooked: uses.length - known.length + (booked.length - known.length),
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
