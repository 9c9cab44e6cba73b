import type { DailyTotal } from '../../engine/ledger/sales-totals.ts'
import { datesBetween } from '../../engine/ledger/sales-totals.ts'
import { countOf } from '../../engine/base/words.ts'
import { csvOf } from '../csv.ts'
import { type Period, periodOf, sumOf, sumsBy, totalsIn } from '../sale-sums.ts'
import { buyersIn } from '../buyer-sums.ts'
import { drawBars } from '../bar-plot.ts'
import { barRows } from '../bar-rows.ts'
import { periodLinks } from '../period-links.ts'
import { defineView, page } from '../view.ts'
import { dollars, exactAmount, networkTitle, roundDollars, shortened } from '../wording.ts'
import { amountOf } from '../../engine/base/networks.ts'

/** What was sold, by day, route, network, way to pay and buyer. */
export const revenue = defineView('revenue', 'Revenue', async ({ sources, query, rest }) => {
  const { ledger, now } = sources
  const period = periodOf(query, now())
  const sales = await totalsIn(ledger, 'sale', period)
  if (rest === '.csv')
    return { kind: 'file', name: `revenue-${period.from}-${period.to}.csv`, text: revenueCsv(sales) }
  const [refunds, buyers] = await Promise.all([totalsIn(ledger, 'refund', period), buyersIn(sources, period)])
  const [sold, refunded] = [sumOf(sales), sumOf(refunds)]
  return page('Revenue', {
    periods: periodLinks('/revenue', period),
    total: dollars(sold.dollars),
    count: countOf(sold.payments, 'sale'),
    refunded:
      refunded.payments === 0
        ? ''
        : `${dollars(refunded.dollars)} in ${countOf(refunded.payments, 'refund')}`,
    from: period.from,
    to: period.to,
    isOneDay: period.days === 1,
    plot: drawBars(dayValues(sales, period)),
    days: dayRows(sales, period),
    routes: barRows(
      sumsBy(
        sales,
        nameOf((of) => of.operation),
      ),
    ),
    networks: barRows(
      sumsBy(
        sales,
        nameOf((of) => networkTitle(of.network)),
      ),
    ),
    schemes: barRows(
      sumsBy(
        sales,
        nameOf((of) => `${of.protocol} ${of.scheme}`),
      ),
    ),
    exact: exactRows(sales),
    buyers:
      buyers === undefined
        ? []
        : barRows(buyers.slice(0, SHOWN_BUYERS).map((each) => ({ ...each, name: shortened(each.name) }))),
    isCounting: buyers === undefined,
    csv: `/revenue.csv?days=${period.days}`,
  })
})

const SHOWN_BUYERS = 10

type Sale = Extract<DailyTotal['of'], { readonly kind: 'sale' }>

function nameOf(read: (of: Sale) => string): (total: DailyTotal) => string {
  return ({ of }) => (of.kind === 'sale' ? read(of) : '')
}

function dayValues(sales: readonly DailyTotal[], { from, to }: Period) {
  const days = new Map(sumsBy(sales, ({ date }) => date).map((sum) => [sum.name, sum]))
  return datesBetween(from, to).map((date) => {
    const { dollars: value = 0n } = days.get(date) ?? {}
    return { label: date, value, words: roundDollars(days.get(date)?.dollars ?? ZERO) }
  })
}

const ZERO = sumOf([]).dollars

function dayRows(sales: readonly DailyTotal[], { from, to }: Period) {
  const days = new Map(sumsBy(sales, ({ date }) => date).map((sum) => [sum.name, sum]))
  return datesBetween(from, to)
    .toReversed()
    .map((date) => {
      const { payments, dollars: amount } = days.get(date) ?? { payments: 0, dollars: ZERO }
      return { date, payments: String(payments), amount: dollars(amount) }
    })
}

/** Each token of each network to its last digit, as `payments list --totals` has it. */
function exactRows(sales: readonly DailyTotal[]) {
  const sums = new Map<string, { network: string; asset: string; amount: bigint; payments: number }>()
  for (const { of, amount, payments } of sales) {
    if (of.kind !== 'sale') continue
    const { network, asset } = of
    const sum = sums.get(`${network} ${asset}`) ?? { network, asset, amount: 0n, payments: 0 }
    sums.set(`${network} ${asset}`, {
      ...sum,
      amount: sum.amount + amount,
      payments: sum.payments + payments,
    })
  }
  return [...sums.values()].map(({ network, asset, amount, payments }) => ({
    network,
    title: networkTitle(network),
    payments: String(payments),
    amount: exactAmount(amount, network, asset),
  }))
}

function revenueCsv(sales: readonly DailyTotal[]): string {
  const rows = sales
    .toSorted((one, other) => (one.date < other.date ? -1 : one.date > other.date ? 1 : 0))
    .flatMap(({ date, of, payments, amount }) => {
      if (of.kind !== 'sale') return []
      const { operation, protocol, scheme, network, asset } = of
      const spelt = amountOf(amount, network, asset)
      return [[date, operation, protocol, scheme, network, spelt.token, String(payments), spelt.amount]]
    })
  return csvOf([['date', 'route', 'protocol', 'scheme', 'network', 'token', 'payments', 'amount'], ...rows])
}
