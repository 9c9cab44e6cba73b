import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import type { Ledger } from '../engine/ledger/ledger.ts'
import { addTotal, largestFirst, type Period, type Sum } from './sale-sums.ts'

/** How long a page waits for what is counted, and how long it is shown before it is counted again. */
const WAIT_MS = 600
const KEPT_MS = 30_000
/** How many sums are sorted before other work goes on. */
const SLICE = 200

interface BuyerSources {
  readonly ledger: Pick<Ledger, 'totals'>
  readonly now: () => number
}

const counted = new WeakMap<
  object,
  Map<string, { readonly at: number; readonly sums: Promise<readonly Sum[]> }>
>()

/**
 * What each buyer has paid in a period, the largest first. There may be a million of them: undefined while they are still
 * being counted, between other work, for the next page that asks.
 */
export async function buyersIn(
  { ledger, now }: BuyerSources,
  period: Period,
): Promise<readonly Sum[] | undefined> {
  const kept = counted.get(ledger) ?? new Map()
  counted.set(ledger, kept)
  const key = `${period.from} ${period.to}`
  const known = kept.get(key)
  const isRecent = known !== undefined && now() - known.at < KEPT_MS
  const sums: Promise<readonly Sum[]> = isRecent ? known.sums : countBuyers(ledger, period)
  if (!isRecent) {
    kept.set(key, { at: now(), sums })
    sums.then(
      () => kept.set(key, { at: now(), sums }),
      () => kept.delete(key),
    )
  }
  const waiting = new AbortController()
  try {
    return await Promise.race([sums, delay(WAIT_MS, undefined, { signal: waiting.signal })])
  } finally {
    waiting.abort()
  }
}

/** A ledger lets other work go on while its totals are read, and only one sum per buyer is kept of them. */
async function countBuyers(
  { totals }: BuyerSources['ledger'],
  { from, to }: Period,
): Promise<readonly Sum[]> {
  const sums = new Map<string, Sum>()
  for await (const total of totals.read('buyer', from, to)) {
    if (total.of.kind === 'buyer') addTotal(sums, total.of.payer, total)
  }
  return sortInSlices([...sums.values()])
}

/** A merge sort, the largest first. */
async function sortInSlices(sums: readonly Sum[]): Promise<readonly Sum[]> {
  let sorted: (readonly Sum[])[] = []
  for (let start = 0; start < sums.length; start += SLICE) {
    sorted.push(sums.slice(start, start + SLICE).toSorted(largestFirst))
    await setImmediate()
  }
  while (sorted.length > 1) {
    const merged: (readonly Sum[])[] = []
    for (let place = 0; place < sorted.length; place += 2)
      merged.push(await merge(sorted[place] ?? [], sorted[place + 1] ?? []))
    sorted = merged
  }
  return sorted[0] ?? []
}

async function merge(left: readonly Sum[], right: readonly Sum[]): Promise<readonly Sum[]> {
  const merged: Sum[] = []
  let [atLeft, atRight] = [0, 0]
  for (;;) {
    const [one, other] = [left[atLeft], right[atRight]]
    const isLeft = other === undefined || (one !== undefined && largestFirst(one, other) <= 0)
    const next = isLeft ? one : other
    if (next === undefined) return merged
    merged.push(next)
    if (isLeft) atLeft += 1
    else atRight += 1
    if (merged.length % SLICE === 0) await setImmediate()
  }
}
