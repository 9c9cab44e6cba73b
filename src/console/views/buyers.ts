import { setImmediate } from 'node:timers/promises'
import { countOf } from '../../engine/base/words.ts'
import { allBuyersIn, type BuyerSums, buyersIn } from '../buyer-sums.ts'
import { csvOf } from '../csv.ts'
import { periodOf } from '../sale-sums.ts'
import { barRows } from '../bar-rows.ts'
import { periodLinks } from '../period-links.ts'
import { defineView, page } from '../view.ts'
import { grouped, percent } from '../wording.ts'
import { formatPrice } from '../../engine/base/money.ts'

const SHOWN = 50
const WRITTEN_AT_ONCE = 500

/** Who buys, how much, and who comes back. */
export const buyers = defineView('buyers', 'Buyers', async ({ sources, query, rest }) => {
  const period = periodOf(query, sources.now())
  if (rest === '.csv') {
    const text = await buyersCsv(await allBuyersIn(sources, period))
    return { kind: 'file', name: `buyers-${period.from}-${period.to}.csv`, text }
  }
  const all = await buyersIn(sources, period)
  const ownPayers = sources.ownPayers()
  const own = all?.among(ownPayers) ?? []
  const count = (all?.size ?? 0) - own.length
  const again = (all?.repeating ?? 0) - own.filter(({ payments }) => payments > 1).length
  const shown = (all?.slice(0, SHOWN + own.length) ?? [])
    .filter(({ name }) => !ownPayers.has(name))
    .slice(0, SHOWN)
  const rows = barRows(shown)
  return page('Buyers', {
    periods: periodLinks('/buyers', period),
    from: period.from,
    to: period.to,
    isCounting: all === undefined,
    count: countOf(count, 'buyer'),
    again: grouped(again),
    rate: count === 0 ? '–' : percent(again, count),
    rows: rows.map((row, place) => ({
      ...row,
      link: `/payments?q=${encodeURIComponent(shown[place]?.name ?? '')}`,
    })),
    more: count > SHOWN ? grouped(count - SHOWN) : '',
    own: barRows(own),
    csv: `/buyers.csv?days=${period.days}`,
  })
})

/** Written some rows at a time, so that sales go on. */
async function buyersCsv(all: BuyerSums): Promise<string> {
  let text = csvOf([['payer', 'payments', 'usd']])
  for (let from = 0; from < all.size; from += WRITTEN_AT_ONCE) {
    const rows = all
      .slice(from, from + WRITTEN_AT_ONCE)
      .map(({ name, payments, dollars }) => [name, String(payments), formatPrice(dollars)])
    text += csvOf(rows)
    await setImmediate()
  }
  return text
}
