import { setImmediate } from 'node:timers/promises'
import type { Ledger } from '../ledger.ts'
import {
  type DailyTotal,
  datesBetween,
  readName,
  totalChanges,
  type TotalKind,
  TOTALS_AT_ONCE,
} from '../sales-totals.ts'
import { idOf, namesOf, readRecords, timeOf } from './redis-record.ts'
import { beginTotals, countTotals, finishTotals, HALF, KEYS } from './redis-scripts.ts'
import { PAGE, SCANNED_AT_ONCE, type RedisStore } from './redis-store.ts'

export function openRedisTotals(store: RedisStore): Ledger['totals'] {
  return {
    read: async function* (kind, from, to) {
      for (const date of datesBetween(from, to)) yield* readDay(store, kind, date)
    },
    rebuild: () => rebuild(store),
  }
}

/** The totals of one day; Redis serves others between its pieces of them. */
async function* readDay(
  { ask }: Pick<RedisStore, 'ask'>,
  kind: TotalKind,
  date: string,
): AsyncGenerator<readonly DailyTotal[]> {
  const set = (await ask((redis) => redis.hget(KEYS.totalSets, 'current'))) ?? '0'
  const sums = new Map<string, { n: bigint; h: bigint; l: bigint }>()
  let cursor = '0'
  do {
    const at = cursor
    const [next, fields] = await ask((redis) =>
      redis.hscan(KEYS.totals(set, kind, date), at, 'COUNT', SCANNED_AT_ONCE),
    )
    for (let place = 0; place < fields.length; place += 2) {
      const field = fields[place] ?? ''
      const name = field.slice(0, -2)
      const sum = sums.get(name) ?? { n: 0n, h: 0n, l: 0n }
      sums.set(name, { ...sum, [field.slice(-1)]: BigInt(fields[place + 1] ?? 0) })
    }
    cursor = next
  } while (cursor !== '0')
  let page: DailyTotal[] = []
  for (const [name, { n, h, l }] of sums) {
    page.push({ date, of: readName(kind, name), payments: Number(n), amount: h * HALF + l })
    if (page.length < TOTALS_AT_ONCE) continue
    yield page
    page = []
    await setImmediate()
  }
  yield page
}

/** Counts all records again, beside the changes that are being made. Resolves to their number. */
async function rebuild(store: RedisStore): Promise<number> {
  const { ask, once, again } = store
  const begin = async (): Promise<number> => Number(await again(beginTotals))
  let [records, from] = [0, await begin()]
  for (;;) {
    const start = `[${timeOf(from + 1)}`
    const first = await ask((redis) => redis.zrangebylex(KEYS.ages, start, '+', 'LIMIT', 0, PAGE))
    const last = first.at(-1)
    if (last === undefined) break
    // All records of one time are counted together.
    const until = Number(last.slice(0, last.indexOf(':')))
    const span = [start, `(${timeOf(until + 1)}`] as const
    const ids = (await ask((redis) => redis.zrangebylex(KEYS.ages, ...span))).map(idOf)
    const page = await readRecords(store, ids)
    const totals = page.flatMap((record) => totalChanges(undefined, record))
    const place = { from, until, span }
    const counted = await once((identity) => countTotals(identity, page.map(namesOf), place, totals))
    if (counted === 1) [records, from] = [records + page.length, until]
    else from = await begin()
  }
  const current = await again((identity) => finishTotals(identity, from))
  await deleteEarlier(store, Number(current))
  return records
}

async function deleteEarlier({ ask }: Pick<RedisStore, 'ask'>, current: number): Promise<void> {
  const prefix = `${KEYS.totalSets}:`
  let cursor = '0'
  do {
    const at = cursor
    const [next, keys] = await ask((redis) => redis.scan(at, 'MATCH', `${prefix}*`, 'COUNT', SCANNED_AT_ONCE))
    const old = keys.filter((key) => Number(key.slice(prefix.length).split(':')[0]) < current)
    if (old.length > 0) await ask((redis) => redis.unlink(old))
    cursor = next
  } while (cursor !== '0')
}
