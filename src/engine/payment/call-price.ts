import type { Micros } from '../base/money.ts'
import type { Endpoint } from '../catalog/catalog.ts'

/** The price of every call of an endpoint; undefined where it is free, or computed. */
export function fixedPrice({ operation: { price } }: Pick<Endpoint, 'operation'>): Micros | undefined {
  return typeof price === 'object' ? undefined : price
}

/** The price of the call that documents show; undefined where it is free. */
export function exampleAmount({ price }: Endpoint['operation']): Micros | undefined {
  return typeof price === 'object' ? price.example : price
}

/** Why a payment does not fit a computed price: it was made for other arguments. Amounts are in atomic units. */
export function otherArguments({ operation }: Endpoint, made: string, due: string): string | undefined {
  return typeof operation.price === 'object' && made !== due
    ? `the payment was made for ${made}; with these arguments the call costs ${due}`
    : undefined
}
