import type { JsonObject } from '../../../../engine/index.ts'
import type { Category } from './table.ts'

/** All in cents. */
interface Prices {
  readonly budget: number
  readonly low: number
  readonly typical: number
  readonly high: number
}

const FEE = 0.08
/** Of what is brought; work that is done on the spot has none. */
const DELIVERY = 0.07
const TIERS = ['budget', 'standard', 'premium'] as const

/** Three itemised ways to do it: at the low, the typical and the high price, fee and delivery included, to the cent. */
export function optionsFor(category: Category, prices: Prices): JsonObject[] {
  const totals = { budget: prices.low, standard: prices.typical, premium: prices.high }
  return TIERS.map((tier) => {
    const total = totals[tier]
    const fee = Math.round(total * FEE)
    const delivery = category.delivery && category.delivery !== 'digital' ? Math.round(total * DELIVERY) : 0
    const subtotal = total - fee - delivery
    return {
      tier,
      title: `${titleOf(tier)} ${category.unit}`,
      items: itemsOf(category, subtotal).map(({ name, cents }) => ({ name, price: cents / 100 })),
      subtotal: subtotal / 100,
      service_fee: fee / 100,
      delivery: delivery / 100,
      total: total / 100,
      currency: 'USD',
      fits_budget: total <= prices.budget,
    }
  })
}

function titleOf(tier: (typeof TIERS)[number]): string {
  return { budget: 'Simple', standard: 'Usual', premium: 'Generous' }[tier]
}

/** The last item takes what rounding leaves, so that the sum is exact. */
function itemsOf({ items }: Category, subtotal: number): { readonly name: string; readonly cents: number }[] {
  const shares = Object.entries(items)
  let left = subtotal
  return shares.map(([name, share], place) => {
    const cents = place === shares.length - 1 ? left : Math.round(subtotal * share)
    left -= cents
    return { name, cents }
  })
}
