import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import type { SalesTotals } from '../engine/ledger/sales-totals.ts'
import { FlatSums, type Sum } from './flat-sums.ts'
import { dollarsOf, largestFirst, type Period } from './sale-sums.ts'

/** How long a page waits for what is counted, and how long it is shown before it is counted again. */
const WAIT_MS = 600
const KEPT_MS = 30_000
/** How many sums are sorted before other work goes on. */
const SLICE = 250

interface BuyerSources {
  readonly ledger: { readonly totals: Pick<SalesTotals, 'read'> }
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
  const sums = new FlatSums()
  for await (const page of totals.read('buyer', from, to)) {
    for (const total of page)
      if (total.of.kind === 'buyer') sums.add(total.of.payer, total.payments, dollarsOf(total))
  }
  return sortInSlices(sums, 0, sums.size)
}

/** A merge sort of the sums of these places, the largest first. */
async function sortInSlices(sums: FlatSums, from: number, to: number): Promise<readonly Sum[]> {
  await setImmediate()
  if (to - from <= SLICE) return sums.slice(from, to).toSorted(largestFirst)
  const middle = Math.ceil((from + to) / 2)
  return merge(await sortInSlices(sums, from, middle), await sortInSlices(sums, middle, to))
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
