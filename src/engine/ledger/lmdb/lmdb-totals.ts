import { hash } from 'node:crypto'
import { type RootDatabase } from 'lmdb'
import { setImmediate } from 'node:timers/promises'
import type { PaymentRecord } from '../payment-record.ts'
import {
  type DailyTotal,
  nameText,
  readName,
  totalChanges,
  TOTALS_AT_ONCE,
  type TotalChange,
  type TotalKind,
} from '../sales-totals.ts'

/** The set of totals, what they are of, the day, and a digest of the name. */
type TotalKey = [set: number, TotalKind, date: string, digest: string]

/** `PAYMENTS AMOUNT NAME` */
type StoredTotal = string

interface Sets {
  /** The set that is read. */
  readonly current: number
  /** The set that is being worked out, from the records that were created until this time. */
  readonly next?: { readonly set: number; readonly until: number } | undefined
}

/** Totals of one store. What changes them is called in transactions. */
export function openTotals(root: RootDatabase) {
  const totals = root.openDB<StoredTotal, TotalKey>({ name: 'totals', encoding: 'string' })
  const meta = root.openDB<Sets, string>({ name: 'meta', encoding: 'json' })
  const setsNow = (): Sets => meta.get('totals') ?? { current: 0 }
  const add = (set: number, { date, of, payments, amount }: TotalChange): void => {
    const name = nameText(of)
    const key: TotalKey = [set, of.kind, date, hash('sha256', name, 'base64url').slice(0, 16)]
    const known = totals.get(key)
    const sum = known === undefined ? { payments: 0, amount: 0n } : readStored(known)
    const [counted, total] = [sum.payments + payments, sum.amount + amount]
    void (counted === 0 && total === 0n ? totals.remove(key) : totals.put(key, `${counted} ${total} ${name}`))
  }
  return {
    /** Changes the totals as a record changes. */
    change: (previous: PaymentRecord | undefined, next: PaymentRecord | undefined): void => {
      const changes = totalChanges(previous, next)
      if (changes.length === 0) return
      const sets = setsNow()
      const createdAt = (next ?? previous)?.createdAt ?? 0
      for (const each of changes) {
        add(sets.current, each)
        if (sets.next !== undefined && createdAt <= sets.next.until) add(sets.next.set, each)
      }
    },
    read: async function* (kind: TotalKind, from: string, to: string): AsyncGenerator<readonly DailyTotal[]> {
      const { current } = setsNow()
      const end: TotalKey = [current, kind, to, AFTER]
      let start: TotalKey = [current, kind, from, '']
      for (;;) {
        const rows = Array.from(totals.getRange({ start, end, limit: TOTALS_AT_ONCE }))
        yield rows.map(({ key, value }) => {
          const { payments, amount, name } = readStored(value)
          return { date: key[2], of: readName(kind, name), payments, amount }
        })
        const last = rows.at(-1)
        if (last === undefined || rows.length < TOTALS_AT_ONCE) return
        const [set, , date, digest] = last.key
        start = [set, kind, date, `${digest}!`]
        // Sales go on between two pages.
        await setImmediate()
      }
    },
    /** Until when the records were created that a rebuild has counted; begins a rebuild when there is none. */
    begin: (): number => {
      const { current, next } = setsNow()
      if (next !== undefined) return next.until
      void meta.put('totals', { current, next: { set: current + 1, until: 0 } })
      return 0
    },
    /** Counts the records of the next page, which were created until `until`, unless another process has. */
    count: (records: readonly PaymentRecord[], from: number, until: number): boolean => {
      const { current, next } = setsNow()
      if (next?.until !== from) return false
      for (const record of records) for (const each of totalChanges(undefined, record)) add(next.set, each)
      void meta.put('totals', { current, next: { set: next.set, until } })
      return true
    },
    /** Lets readers see the new totals. */
    finish: (from: number): void => {
      const { next } = setsNow()
      if (next?.until === from) void meta.put('totals', { current: next.set })
    },
    /** Deletes some of what earlier sets have left; true: there is more. */
    clearOld: (): boolean => {
      const keys = Array.from(totals.getKeys({ end: [setsNow().current], limit: CLEARED_AT_ONCE }))
      for (const key of keys) void totals.remove(key)
      return keys.length > 0
    },
  }
}

/** Sorts after every digest. */
const AFTER = '~'
const CLEARED_AT_ONCE = 1_000

function readStored(text: StoredTotal): {
  readonly payments: number
  readonly amount: bigint
  readonly name: string
} {
  const amountAt = text.indexOf(' ') + 1
  const nameAt = text.indexOf(' ', amountAt) + 1
  return {
    payments: Number(text.slice(0, amountAt - 1)),
    amount: BigInt(text.slice(amountAt, nameAt - 1)),
    name: text.slice(nameAt),
  }
}
