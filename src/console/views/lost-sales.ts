import type { TemplateContext } from '../../engine/documents/template.ts'
import {
  SALE_STEPS,
  type SaleFigure,
  saleFigures,
  type SaleStep,
  type Visitor,
} from '../../engine/usage/sales-funnel.ts'
import { ERRORS, type ErrorCode } from '../../engine/base/errors.ts'
import { periodOf } from '../sale-sums.ts'
import { periodLinks } from '../period-links.ts'
import { defineView, page } from '../view.ts'
import { grouped, percent } from '../wording.ts'

const LABELS: Readonly<Record<SaleStep, string>> = {
  asked: 'Asked: a 402 with the price',
  signed: 'Signed: a payment came',
  settled: 'Settled: the money moved',
  delivered: 'Delivered: the answer arrived',
}

/** Where sales are lost between the 402 and the answer. */
export const lostSales = defineView('lost-sales', 'Lost sales', async ({ sources, query }) => {
  const period = periodOf(query, sources.now())
  const figures = saleFigures(await sources.ledger.counts.read(period.from, period.to))
  const asked = stepCount(figures, 'asked', 'other')
  const signed = stepCount(figures, 'signed', 'other')
  const routes = routeRows(figures)
  return page('Lost sales', {
    periods: periodLinks('/lost-sales', period),
    from: period.from,
    to: period.to,
    isEmpty: figures.length === 0,
    unpaid: grouped(Math.max(0, asked - signed)),
    asked: grouped(asked),
    steps: SALE_STEPS.map((step) => {
      const count = stepCount(figures, step, 'other')
      const most = Math.max(...SALE_STEPS.map((each) => stepCount(figures, each, 'other')), 1)
      return {
        step,
        label: LABELS[step],
        count: grouped(count),
        share: step === 'asked' ? '' : percent(count, Math.max(asked, count)),
        length: ((count / most) * 100).toFixed(1),
      }
    }),
    routes,
    failing: reasonRows(figures, 'would_fail'),
    refused: reasonRows(figures, 'refused'),
    others: [
      apart('Probes: crawlers and monitors', figures, 'probe'),
      apart('Your own wallets', figures, 'own'),
    ],
    hasOwn: sources.ownPayers().size > 0,
  })
})

function stepCount(
  figures: readonly SaleFigure[],
  step: SaleStep,
  visitor: Visitor,
  operation?: string,
): number {
  return figures.reduce(
    (sum, { of, count }) =>
      of.kind === 'step' &&
      of.step === step &&
      of.visitor === visitor &&
      (operation === undefined || of.operation === operation)
        ? sum + count
        : sum,
    0,
  )
}

function routeRows(figures: readonly SaleFigure[]): readonly TemplateContext[] {
  const operations = [...new Set(figures.map(({ of }) => of.operation))]
  return operations
    .map((operation) => {
      const [asked = 0, signed = 0, settled = 0, delivered = 0] = SALE_STEPS.map((step) =>
        stepCount(figures, step, 'other', operation),
      )
      return { operation, asked, signed, settled, delivered, lost: Math.max(0, asked - signed) }
    })
    .filter(({ asked, signed, settled, delivered }) => asked + signed + settled + delivered > 0)
    .toSorted((one, other) => other.lost - one.lost || other.asked - one.asked)
    .map(({ operation, asked, signed, settled, delivered, lost }) => ({
      operation,
      asked: grouped(asked),
      signed: grouped(signed),
      settled: grouped(settled),
      delivered: grouped(delivered),
      lost: grouped(lost),
      rate: percent(Math.min(settled, asked), asked),
    }))
}

function reasonRows(
  figures: readonly SaleFigure[],
  kind: 'would_fail' | 'refused',
): readonly TemplateContext[] {
  const sums = new Map<string, { operation: string; reason: string; count: number }>()
  for (const { of, count } of figures) {
    if (of.kind !== kind) continue
    const { operation, reason } = of
    const sum = sums.get(`${operation} ${reason}`) ?? { operation, reason, count: 0 }
    sums.set(`${operation} ${reason}`, { ...sum, count: sum.count + count })
  }
  return [...sums.values()]
    .toSorted((one, other) => other.count - one.count)
    .map(({ operation, reason, count }) => {
      const [code = '', detail = ''] = reason.split(': ')
      return { operation, code, detail, words: isCode(code) ? ERRORS[code].title : '', count: grouped(count) }
    })
}

function isCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text)
}

function apart(label: string, figures: readonly SaleFigure[], visitor: Visitor): TemplateContext {
  const [asked = '', signed = '', settled = ''] = SALE_STEPS.map((step) =>
    grouped(stepCount(figures, step, visitor)),
  )
  return { label, asked, signed, settled }
}
