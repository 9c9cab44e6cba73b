import type { TemplateContext } from '../engine/documents/template.ts'
import type { Sum } from './flat-sums.ts'
import { dollars, grouped } from './wording.ts'

/** Sums as rows of a table with a bar each, the longest for the largest. */
export function barRows(sums: readonly Sum[]): readonly TemplateContext[] {
  const most = sums.reduce((largest, { dollars: amount }) => (amount > largest ? amount : largest), 0n)
  return sums.map(({ name, payments, dollars: amount }) => ({
    name,
    payments: grouped(payments),
    amount: dollars(amount),
    length: most === 0n ? '0' : String(Number((amount * 1_000n) / most) / 10),
  }))
}
