import type { Runtime } from '../../base/runtime.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { createFacilitator, type Facilitator, type FacilitatorAccess } from './facilitator-client.ts'
import { ListingReports } from './listing-reports.ts'
import { observed, type OnFacilitatorOutcome } from './observed-facilitator.ts'

interface OpenFacilitatorsSettings extends Pick<Runtime, 'http' | 'now' | 'random' | 'deadline'> {
  /** In order of preference. */
  readonly facilitators: readonly FacilitatorAccess[]
  readonly ledger: Ledger
  /** Takes a line for the operator. */
  readonly report: (line: string) => void
  /** Called for each answer of a facilitator about a payment. */
  readonly noteFacilitator?: OnFacilitatorOutcome | undefined
}

/** The facilitators of a service, for all networks. */
export interface OpenFacilitators {
  readonly facilitators: readonly Facilitator[]
  readonly listings: ListingReports
}

export function openFacilitators(settings: OpenFacilitatorsSettings): OpenFacilitators {
  const { noteFacilitator } = settings
  return {
    facilitators: settings.facilitators.map((access) => {
      const facilitator = createFacilitator(access, settings)
      return noteFacilitator === undefined ? facilitator : observed(facilitator, noteFacilitator)
    }),
    listings: new ListingReports(settings),
  }
}
