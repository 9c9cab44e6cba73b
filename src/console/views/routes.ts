import { routeKey } from '../../engine/catalog/catalog.ts'
import { spellPrice } from '../../engine/catalog/price/text.ts'
import { nameOfRoute } from '../../engine/http/status.ts'
import { add, type Counts, NOTHING } from '../../engine/usage/counts.ts'
import { answersIn, quantile } from '../../engine/usage/latency.ts'
import { sumsBy, totalsIn } from '../sale-sums.ts'
import { DAY_MS, dateOf } from '../../engine/ledger/sales-totals.ts'
import { defineView, page } from '../view.ts'
import { dollars, elapsed, grouped, moment } from '../wording.ts'

const STATES = { ready: 'up', not_configured: 'degraded', planned: 'idle', unimplemented: 'idle' } as const
const WORDS: Readonly<Record<string, string>> = { ready: 'served', not_configured: 'not configured' }

/** What is sold, how it answers and what it brings. */
export const routes = defineView('routes', 'Routes', async ({ sources }) => {
  const { service, usage, ledger, now } = sources
  const to = dateOf(now())
  const [days, sales] = await Promise.all([
    usage.read(),
    totalsIn(ledger, 'sale', { days: 7, from: dateOf(now() - 6 * DAY_MS), to }),
  ])
  const revenue = new Map(
    sumsBy(sales, ({ of }) => (of.kind === 'sale' ? of.operation : '')).map((sum) => [sum.name, sum]),
  )
  const rows = service.revision().routes.map(({ route, readiness }) => {
    const counts = days.reduce(
      (sum, day) => add(sum, day.counts.get(nameOfRoute(route)) ?? NOTHING),
      NOTHING as Counts,
    )
    const { price } = route.operation
    const sold = route.kind === 'paid' ? revenue.get(route.operation.id) : undefined
    const slow = quantile(counts.latency, 0.95)
    return {
      key: routeKey(route),
      isPaid: route.kind === 'paid',
      price:
        route.kind !== 'paid' || price === undefined
          ? 'free'
          : typeof price === 'bigint'
            ? dollars(price)
            : `${spellPrice(price)} USD`,
      state: STATES[readiness] ?? 'idle',
      words: WORDS[readiness] ?? readiness.replaceAll('_', ' '),
      unpaid: unlessNone(counts.stages.unpaid),
      sold: unlessNone(sold?.payments ?? 0),
      amount: sold === undefined ? '' : dollars(sold.dollars),
      answers: unlessNone(answersIn(counts.latency)),
      failed: unlessNone(counts.stages.failed),
      p95: slow === undefined ? '' : elapsed(slow),
      last: counts.lastSuccess === 0 ? '' : moment(counts.lastSuccess),
    }
  })
  return page('Routes', {
    paid: rows.filter(({ isPaid }) => isPaid),
    free: rows.filter(({ isPaid }) => !isPaid),
  })
})

/** Most routes of a large catalog have nothing to show: zeros would hide the others. */
function unlessNone(count: number): string {
  return count === 0 ? '' : grouped(count)
}
