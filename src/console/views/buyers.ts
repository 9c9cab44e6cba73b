import { countOf } from '../../engine/base/words.ts'
import { buyersIn } from '../buyer-sums.ts'
import { csvOf } from '../csv.ts'
import type { Sum } from '../flat-sums.ts'
import { periodOf } from '../sale-sums.ts'
import { barRows } from '../bar-rows.ts'
import { periodLinks } from '../period-links.ts'
import { defineView, page } from '../view.ts'
import { grouped, percent } from '../wording.ts'
import { formatPrice } from '../../engine/base/money.ts'

const SHOWN = 50

/** Who buys, how much, and who comes back. */
export const buyers = defineView('buyers', 'Buyers', async ({ sources, query, rest }) => {
  const period = periodOf(query, sources.now())
  const all = await buyersIn(sources, period)
  const own = sources.ownPayers()
  if (rest === '.csv')
    return { kind: 'file', name: `buyers-${period.from}-${period.to}.csv`, text: buyersCsv(all ?? []) }
  const others = (all ?? []).filter(({ name }) => !own.has(name))
  const again = others.filter(({ payments }) => payments > 1).length
  const shown = others.slice(0, SHOWN)
  const rows = barRows(shown)
  return page('Buyers', {
    periods: periodLinks('/buyers', period),
    from: period.from,
    to: period.to,
    isCounting: all === undefined,
    count: countOf(others.length, 'buyer'),
    again: grouped(again),
    rate: others.length === 0 ? '–' : percent(again, others.length),
    rows: rows.map((row, place) => ({
      ...row,
      link: `/payments?q=${encodeURIComponent(shown[place]?.name ?? '')}`,
    })),
    more: others.length > SHOWN ? grouped(others.length - SHOWN) : '',
    own: barRows((all ?? []).filter(({ name }) => own.has(name))),
    csv: `/buyers.csv?days=${period.days}`,
  })
})

function buyersCsv(sums: readonly Sum[]): string {
  return csvOf([
    ['payer', 'payments', 'usd'],
    ...sums.map(({ name, payments, dollars }) => [name, String(payments), formatPrice(dollars)]),
  ])
}
