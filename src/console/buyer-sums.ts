import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import type { SalesTotals } from '../engine/ledger/sales-totals.ts'
import { FlatSums, type Sum } from './flat-sums.ts'
import { dollarsOf, type Period } from './sale-sums.ts'

/** How long a page waits for what is counted, and how long it is shown before it is counted again. */
const WAIT_MS = 600
const KEPT_MS = 30_000
/** How many places are put in order before other work goes on. */
const SLICE = 1_000

interface BuyerSources {
  readonly ledger: { readonly totals: Pick<SalesTotals, 'read'> }
  readonly now: () => number
}

/** What each buyer of a period has paid, the largest first, in flat memory: there may be a million of them. */
export class BuyerSums {
  readonly #sums: FlatSums
  readonly #order: Uint32Array
  /** How many of them have paid more than once. */
  readonly repeating: number

  constructor(sums: FlatSums, order: Uint32Array, repeating: number) {
    this.#sums = sums
    this.#order = order
    this.repeating = repeating
  }

  get size(): number {
    return this.#order.length
  }

  /** Those from one rank to before another. */
  slice(from: number, to: number): Sum[] {
    return Array.from(this.#order.subarray(from, to), (place) => this.#sums.at(place))
  }

  /** Those of these payers, the largest first. */
  among(payers: Iterable<string>): Sum[] {
    return this.#sums.ranked(Array.from(payers).flatMap((payer) => this.#sums.placeOf(payer) ?? []))
  }
}

const counted = new WeakMap<object, Map<string, { readonly at: number; readonly sums: Promise<BuyerSums> }>>()

/** The buyers of a period, or undefined while they are still being counted, for the next page that asks. */
export async function buyersIn(sources: BuyerSources, period: Period): Promise<BuyerSums | undefined> {
  const waiting = new AbortController()
  try {
    return await Promise.race([
      allBuyersIn(sources, period),
      delay(WAIT_MS, undefined, { signal: waiting.signal }),
    ])
  } finally {
    waiting.abort()
  }
}

/** The buyers of a period, however long they are being counted: between other work, and once for all who ask. */
export function allBuyersIn({ ledger, now }: BuyerSources, period: Period): Promise<BuyerSums> {
  const kept = counted.get(ledger) ?? new Map<string, { at: number; sums: Promise<BuyerSums> }>()
  counted.set(ledger, kept)
  const key = `${period.from} ${period.to}`
  const known = kept.get(key)
  if (known !== undefined && now() - known.at < KEPT_MS) return known.sums
  const sums = countBuyers(ledger, period)
  kept.set(key, { at: now(), sums })
  sums.then(
    () => kept.set(key, { at: now(), sums }),
    () => kept.delete(key),
  )
  return sums
}

/** A ledger lets other work go on while its totals are read, and only one sum per buyer is kept of them. */
async function countBuyers({ totals }: BuyerSources['ledger'], { from, to }: Period): Promise<BuyerSums> {
  const sums = new FlatSums()
  for await (const page of totals.read('buyer', from, to)) {
    for (const total of page)
      if (total.of.kind === 'buyer') sums.add(total.of.payer, total.payments, dollarsOf(total))
  }
  let repeating = 0
  for (let place = 0; place < sums.size; place += 1) if (sums.paymentsAt(place) > 1) repeating += 1
  return new BuyerSums(sums, await placesInOrder(sums), repeating)
}

/** A merge sort of the places of sums, the largest first, between other work. */
async function placesInOrder(sums: FlatSums): Promise<Uint32Array> {
  let places = new Uint32Array(sums.size)
  for (let place = 0; place < places.length; place += 1) places[place] = place
  for (let first = 0; first < places.length; first += SLICE) {
    places.subarray(first, first + SLICE).sort((one, other) => sums.compare(one, other))
    await setImmediate()
  }
  let merged = new Uint32Array(places.length)
  for (let width = SLICE; width < places.length; width *= 2) {
    for (let first = 0; first < places.length; first += 2 * width)
      await merge(sums, places.subarray(first, first + 2 * width), width, merged.subarray(first))
    ;[places, merged] = [merged, places]
  }
  return places
}

/** Merges the two sorted parts of `places`, of which the first has this width. */
async function merge(sums: FlatSums, places: Uint32Array, width: number, merged: Uint32Array): Promise<void> {
  let [left, right] = [0, width]
  for (let rank = 0; rank < places.length; rank += 1) {
    const [one, other] = [left < width ? places[left] : undefined, places[right]]
    const isLeft = other === undefined || (one !== undefined && sums.compare(one, other) <= 0)
    merged[rank] = (isLeft ? one : other) ?? 0
    if (isLeft) left += 1
    else right += 1
    if (rank % SLICE === 0) await setImmediate()
  }
}
