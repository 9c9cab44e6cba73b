import { type RootDatabase } from 'lmdb'
import { COUNTED_DAYS, type DayCounts, MOST_NAMES } from '../daily-counts.ts'
import { DAY_MS, dateOf, datesBetween } from '../sales-totals.ts'

type CountKey = [date: string, name: string]

/** Numbers by day and name. `add` is called in a transaction. */
export function openCounts(root: RootDatabase) {
  const counted = root.openDB<number, CountKey>({ name: 'counts', encoding: 'json' })
  const ofDay = (date: string): { start: [string]; end: [string, string] } => ({
    start: [date],
    end: [date, AFTER],
  })
  return {
    add: (date: string, counts: ReadonlyMap<string, number>): void => {
      let names = counted.getKeysCount(ofDay(date))
      for (const [name, count] of counts) {
        const known = counted.get([date, name])
        if (known === undefined && names >= MOST_NAMES) continue
        if (known === undefined) names += 1
        void counted.put([date, name], (known ?? 0) + count)
      }
      const oldest = dateOf(Date.parse(date) - (COUNTED_DAYS - 1) * DAY_MS)
      for (const key of Array.from(counted.getKeys({ end: [oldest], limit: MOST_NAMES })))
        void counted.remove(key)
    },
    read: (from: string, to: string): DayCounts[] =>
      datesBetween(from, to).map((date) => ({
        date,
        counts: new Map(Array.from(counted.getRange(ofDay(date)), ({ key, value }) => [key[1], value])),
      })),
  }
}

/** Sorts after every name. */
const AFTER = '\uffff'
