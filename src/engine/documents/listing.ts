import type { Catalog, Route, RouteKind } from '../catalog/catalog.ts'
import { formatPrice } from '../money.ts'

const ORDER: readonly RouteKind[] = ['paid', 'sample', 'free']

/** Every route that is served, in the order readers need them: what is sold, its previews, the rest. */
export function listedRoutes({ routes }: Catalog): Route[] {
  return ORDER.flatMap((kind) => routes.filter((route) => route.kind === kind && !route.operation.planned))
}

/** How many routes of each kind there are among these. */
export function countKinds(routes: readonly Route[]): Record<RouteKind, number> {
  const count = (kind: RouteKind): number => routes.filter((route) => route.kind === kind).length
  return { paid: count('paid'), sample: count('sample'), free: count('free') }
}

/** The price as every document spells it, six decimals of USD; undefined for what costs nothing. */
export function priceOf({ kind, operation }: Route): string | undefined {
  return kind !== 'paid' || operation.price === undefined ? undefined : formatPrice(operation.price)
}

/** Stands where a catalog names no date: documents carry no clock. */
const UNDATED = '2026-01-01'

/** When the catalog last changed, as an instant. */
export function lastChange({ service }: Catalog): string {
  return `${service.updated ?? UNDATED}T00:00:00.000Z`
}
