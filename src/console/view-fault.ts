import { LedgerLostError } from '../engine/base/errors.ts'
import { compilePage } from '../engine/documents/page-frame.ts'
import type { TemplateContext } from '../engine/documents/template.ts'
import type { ConsoleSources } from './sources.ts'

/** A view that could not be made: the frame stays, so that the operator can go on to Health. */
export const printFault = compilePage('console/fault.html.hbs')

/** Why a view could not be made, and what to do: nearly all of them read the ledger. */
export async function describeFault({ ledger, titles }: ConsoleSources): Promise<TemplateContext> {
  const fault: unknown = await ledger.check().then(
    () => undefined,
    (caught: unknown) => caught,
  )
  if (fault === undefined)
    return { text: 'This view could not be made.', step: 'Load it again; the log says why.', reason: '' }
  const reason = fault instanceof Error ? fault.message : ''
  if (fault instanceof LedgerLostError) return { ...ledgerLost, reason }
  return { ...ledgerAway(titles.ledger), reason }
}

/** What the operator is told of a ledger that was emptied or replaced. */
export const ledgerLost = {
  text: 'The ledger has lost data, and nothing is sold.',
  step: 'Compare it with the chains: ratecard ledger reopen',
} as const

/** The same of one that does not answer. */
export function ledgerAway(title: string): { readonly text: string; readonly step: string } {
  return {
    text: `The ledger cannot be reached, and nothing is sold: ${title}.`,
    step: 'Look at its server and at the log of this process.',
  }
}
