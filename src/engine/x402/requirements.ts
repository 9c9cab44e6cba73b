import { isDeepStrictEqual } from 'node:util'
import type { Endpoint, Operation } from '../catalog/catalog.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { formatPrice, PRICE_DECIMALS, type Micros } from '../base/money.ts'

/** One entry of `accepts` (x402 v2 core §5.1.2). */
export interface Requirements {
  readonly scheme: string
  readonly network: string
  readonly amount: string
  readonly asset: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly extra?: Readonly<Record<string, Json>> | null
}

/** What a payment repeats of its offer. */
export interface Accepted extends Omit<Requirements, 'maxTimeoutSeconds' | 'extra'> {
  /** Undefined: not repeated, and not compared. */
  readonly maxTimeoutSeconds?: number | undefined
  /** Undefined: not repeated, and not compared. Null: repeated as empty. */
  readonly extra?: Requirements['extra'] | undefined
}

/** `fixed`: known before the work, also when it is computed from the arguments. `metered`: known after the work. */
export type PriceKind = 'fixed' | 'metered'

export function priceKindOf({ operation }: Pick<Endpoint, 'operation'>): PriceKind {
  return operation.meter === undefined ? 'fixed' : 'metered'
}

/** What a scheme offers on one network, at whatever price: plain data, so that a thread can render it. */
export interface NetworkOffer {
  readonly scheme: string
  /** The prices that can be paid with it. For a metered one a scheme charges less than what was authorised. */
  readonly prices: readonly PriceKind[]
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  /** Places of the asset: an amount is in units of 10^-decimals. */
  readonly decimals: number
  readonly payTo: string
  /** Seconds a signed payment is valid. */
  readonly timeoutSeconds: number
  readonly extra: Readonly<Record<string, Json>>
  /** Extensions of a 402 with this offer that its clients look for, by name. */
  readonly extensions?: JsonObject
  /** Milliseconds of work that a payment outlives; longer work is paid for first. Undefined: all that the timeout allows. */
  readonly longestWork?: number
}

/** Whether an operation is paid for before or after its work with this offer. */
export function settleOrderOf(
  { longestWork = Infinity }: Pick<NetworkOffer, 'longestWork'>,
  { settle, timeout, meter }: Pick<Operation, 'settle' | 'timeout' | 'meter'>,
): Operation['settle'] {
  return meter === undefined && timeout > longestWork ? 'upfront' : settle
}

/**
 * The offer of a price.
 *
 * @example
 * import { requirementsOf } from 'ratecard/scheme'
 * import type { Micros, NetworkOffer } from 'ratecard/scheme'
 *
 * export const offerFor = (offer: NetworkOffer, price: Micros) => requirementsOf(offer, price, 'after')
 */
export function requirementsOf(
  offer: NetworkOffer,
  price: Micros,
  settle: Operation['settle'],
): Requirements {
  return requirementsFor(offer, toAtomic(price, offer.decimals).toString(), settle)
}

/** The price may have risen since the payer has signed the amount for it. */
export function atMost(signed: bigint, price: bigint): bigint {
  return price < signed ? price : signed
}

/**
 * The amount of a token with `decimals` places that equals `price`. Throws RangeError when the token has too few
 * decimals, because rounding would change the charge.
 *
 * @example
 * import { toAtomic } from 'ratecard/scheme'
 * import type { Micros } from 'ratecard/scheme'
 *
 * export const inCents = (price: Micros) => toAtomic(price, 2)
 */
export function toAtomic(price: Micros, decimals: number): bigint {
  if (decimals >= PRICE_DECIMALS) return price * 10n ** BigInt(decimals - PRICE_DECIMALS)
  const step = 10n ** BigInt(PRICE_DECIMALS - decimals)
  if (price % step !== 0n)
    throw new RangeError(`${formatPrice(price)} USD has no exact value in ${decimals} decimals`)
  return price / step
}

/** The offer of an amount in atomic units. The default flow is omitted, as in the official SDK. */
export function requirementsFor(
  { scheme, network, asset, payTo, timeoutSeconds, extra }: NetworkOffer,
  amount: string,
  settle: Operation['settle'],
): Requirements {
  return {
    scheme,
    network,
    amount,
    asset,
    payTo,
    maxTimeoutSeconds: timeoutSeconds,
    extra: settle === 'upfront' ? { ...extra, paymentFlow: 'upfront' } : extra,
  }
}

/**
 * Whether `accepted` is this offer: every repeated field equal; `extra` may have more than was offered. `isSame` compares
 * asset and payee as the scheme spells them.
 *
 * @example
 * import { matches } from 'ratecard/scheme'
 * import type { Requirements } from 'ratecard/scheme'
 *
 * export const isOurs = (accepted: Requirements, offer: Requirements) => matches(accepted, offer, (a, b) => a === b)
 */
export function matches(
  accepted: Accepted,
  offered: Requirements,
  isSame: (a: string, b: string) => boolean,
): boolean {
  return (
    accepted.scheme === offered.scheme &&
    accepted.network === offered.network &&
    accepted.amount === offered.amount &&
    (accepted.maxTimeoutSeconds ?? offered.maxTimeoutSeconds) === offered.maxTimeoutSeconds &&
    isSame(accepted.asset, offered.asset) &&
    isSame(accepted.payTo, offered.payTo) &&
    (accepted.extra === undefined || covers(accepted.extra ?? {}, offered.extra ?? {}))
  )
}

function covers(given: Readonly<Record<string, Json>>, asked: Readonly<Record<string, Json>>): boolean {
  return Object.entries(asked).every(([key, value]) => isDeepStrictEqual(given[key], value))
}
