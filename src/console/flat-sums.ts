import { toMicros, type Micros } from '../engine/base/money.ts'

/** Payments and money under one name. Tokens that are dollars are added up, others are only counted. */
export interface Sum {
  readonly name: string
  readonly payments: number
  readonly dollars: Micros
}

const FIRST_SLOTS = 1_024

/**
 * Sums by name while a million totals are added up, in flat memory: with a bigint of its own for each sum, sales would
 * wait for the garbage collector. A sum holds up to 9,223,372,036,854 USD.
 */
export class FlatSums {
  readonly #slots = new Map<string, number>()
  readonly #names: string[] = []
  #payments = new Float64Array(FIRST_SLOTS)
  #dollars = new BigInt64Array(FIRST_SLOTS)

  get size(): number {
    return this.#names.length
  }

  add(name: string, payments: number, dollars: Micros): void {
    const slot = this.#slots.get(name) ?? this.#open(name)
    this.#payments[slot] = (this.#payments[slot] ?? 0) + payments
    this.#dollars[slot] = (this.#dollars[slot] ?? 0n) + dollars
  }

  /** The sum of this place: places are given in the order in which names come. */
  at(place: number): Sum {
    return {
      name: this.#names[place] ?? '',
      payments: this.#payments[place] ?? 0,
      dollars: toMicros(this.#dollars[place] ?? 0n),
    }
  }

  /** The place of this name, if it has one. */
  placeOf(name: string): number | undefined {
    return this.#slots.get(name)
  }

  paymentsAt(place: number): number {
    return this.#payments[place] ?? 0
  }

  /** The sums of these places, the largest first. */
  ranked(places: readonly number[]): Sum[] {
    return places.toSorted((one, other) => this.compare(one, other)).map((place) => this.at(place))
  }

  /** Negative when the sum of one place comes before that of another: by dollars, then by payments, the largest first. */
  compare(one: number, other: number): number {
    const [dollars, others] = [this.#dollars[one] ?? 0n, this.#dollars[other] ?? 0n]
    if (dollars === others) return this.paymentsAt(other) - this.paymentsAt(one)
    return dollars < others ? 1 : -1
  }

  #open(name: string): number {
    const slot = this.#names.push(name) - 1
    this.#slots.set(name, slot)
    if (slot < this.#payments.length) return slot
    const [payments, dollars] = [new Float64Array(2 * slot), new BigInt64Array(2 * slot)]
    payments.set(this.#payments)
    dollars.set(this.#dollars)
    this.#payments = payments
    this.#dollars = dollars
    return slot
  }
}
