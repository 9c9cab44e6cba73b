import type { TemplateContext } from '../engine/documents/template.ts'
import { type Period, PERIODS } from './sale-sums.ts'

/** Links of a view to its periods. */
export function periodLinks(path: string, { days: shown }: Period): readonly TemplateContext[] {
  return PERIODS.map((days) => ({
    link: `${path}?days=${days}`,
    label: days === 1 ? 'Today' : `${days} days`,
    current: days === shown,
  }))
}
