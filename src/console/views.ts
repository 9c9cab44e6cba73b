import { buyers } from './views/buyers.ts'
import { catalog } from './views/catalog.ts'
import { health } from './views/health.ts'
import { listings } from './views/listings.ts'
import { lostSales } from './views/lost-sales.ts'
import { now } from './views/now.ts'
import { payment, refund } from './views/payment.ts'
import { payments } from './views/payments.ts'
import { revenue } from './views/revenue.ts'
import { routes } from './views/routes.ts'
import type { View } from './view.ts'

/** The views in the order of the navigation. */
export const VIEWS: readonly View[] = [
  now,
  revenue,
  lostSales,
  payments,
  routes,
  buyers,
  catalog,
  listings,
  health,
]

/** The view of a path, and what follows its own path; undefined: there is none. */
export function viewAt(path: string): { readonly view: View; readonly rest: string } | undefined {
  const [, id, isRefund] = /^\/payments\/([\w-]{1,64})(\/refund)?$/.exec(path) ?? []
  if (id !== undefined) return { view: isRefund === undefined ? payment : refund, rest: id }
  const [, base = path, rest = ''] = /^(\/(?:revenue|buyers))(\.csv)$/.exec(path) ?? []
  const view = VIEWS.find((each) => each.path === base)
  return view === undefined ? undefined : { view, rest }
}
