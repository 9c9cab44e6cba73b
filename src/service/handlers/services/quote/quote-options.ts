import type { JsonObject } from 'ratecard/handler'
import type { Category } from './table.ts'

/** All in cents. */
interface Prices {
  readonly budget: number
  readonly low: number
  readonly typical: number
  readonly high: number
}

const TIERS = ['budget', 'standard', 'premium'] as const

/** Three itemised ways to do it: at the low, the typical and the high price, to the cent. */
export function optionsFor(category: Category, prices: Prices): JsonObject[] {
  const totals = { budget: prices.low, standard: prices.typical, premium: prices.high }
  return TIERS.map((tier) => {
    const total = totals[tier]
    return {
      tier,
      title: `${titleOf(tier)} ${category.id.replaceAll('_', ' ')}`,
      items: itemsOf(category, total).map(({ name, cents }) => ({ name, price: cents / 100 })),
      total: total / 100,
      currency: 'USD',
      fits_budget: total <= prices.budget,
    }
  })
}

function titleOf(tier: (typeof TIERS)[number]): string {
  return { budget: 'Basic', standard: 'Standard', premium: 'Premium' }[tier]
}

/** The last item takes what rounding leaves, so that the sum is exact. */
function itemsOf({ items }: Category, total: number): { readonly name: string; readonly cents: number }[] {
  const shares = Object.entries(items)
  let left = total
  return shares.map(([name, share], place) => {
    const cents = place === shares.length - 1 ? left : Math.round(total * share)
    left -= cents
    return { name, cents }
  })
}
