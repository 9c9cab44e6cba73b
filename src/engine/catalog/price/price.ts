import type { Json } from '../../base/json.ts'
import type { Micros } from '../../base/money.ts'
import type { PricePart } from '../../base/price-part.ts'

/** The price of a call: fixed, or computed from its arguments. */
export type Price = Micros | ComputedPrice

export interface ComputedPrice {
  readonly rule: PriceRule
  /** Lowest and highest price of any call. */
  readonly lowest: Micros
  readonly highest: Micros
  /** Price of the call with the examples of the catalog. */
  readonly example: Micros
}

/**
 * Rule for a price from arguments: `base`, and a price for each choice and each unit, in USD with at most twelve
 * decimals, as texts. A type alias, so that it counts as JSON: it is published and stored for other processes
 * unchanged.
 */
export type PriceRule = {
  readonly base: string
  readonly by: readonly Choice[]
  readonly per: readonly Rate[]
  readonly min?: string
  readonly max?: string
}

/**
 * Rule for a price that is known after the work, in USD with at most twelve decimals, as texts. The price of its
 * operation is the ceiling: what a buyer authorizes. A type alias, so that it counts as JSON.
 */
export type Meter = {
  readonly base: string
  readonly counts: readonly Count[]
  readonly min?: string
  /** The price of an answer with a missing count; absent: the work fails. */
  readonly if_missing?: string
  /** USD for the example of the catalog; absent when it does not show every count. */
  readonly example?: string
}

/** A quantity that is counted after the work, and the price of each unit: parts of a unit cost a part of its price. */
export type Count = {
  readonly counter: CounterName
  /** A JSON Pointer, the name of a count that the handler returns, `answer` or `work`. */
  readonly of: string
  readonly unit: string
  readonly price: string
}

export type CounterName = 'value_of' | 'usage_of' | 'bytes_of' | 'seconds_of'

/** The argument that a choice or rate refers to. */
export type Place = {
  readonly argument: string
  /** Member of the body in this argument; `default` is the API's value when it is absent or null. */
  readonly member?: string
  readonly default?: Json
}

/** Adds a price for a value of a parameter; values that are not in `prices` add nothing. */
export type Choice = Place & {
  readonly parameter: string
  readonly prices: Readonly<Record<string, string>>
  /** Every possible value; `required`: every call has one. */
  readonly values: readonly string[]
  readonly required: boolean
}

/** A counted quantity, and the price of each unit above what is included. */
export type Rate = Place & {
  /** A key of `MEASURES`. Rules come from other processes too, which may be of another version. */
  readonly measure: string
  /** `body`: the whole body. */
  readonly parameter: string
  readonly unit: string
  readonly price: string
  readonly included: string
  readonly least: number
  /** Absent: no limit. */
  readonly most?: number
}

/** The price of one call. */
export interface Quote {
  readonly amount: Micros
  /** The parts of a computed price, in the order of the sum. */
  readonly parts?: readonly PricePart[]
}

/** The quote for a call whose arguments are invalid. */
export function quoteLowest(price: Price): Quote {
  return { amount: typeof price === 'bigint' ? price : price.lowest }
}

/** The highest price of a call. */
export function highestOf(price: Price): Micros {
  return typeof price === 'bigint' ? price : price.highest
}

/** The highest of several prices; undefined if nothing is sold. */
export function highestOfAll(prices: readonly (Price | undefined)[]): Micros | undefined {
  return prices
    .flatMap((price) => (price === undefined ? [] : [highestOf(price)]))
    .reduce<Micros | undefined>((a, b) => (a === undefined || b > a ? b : a), undefined)
}
