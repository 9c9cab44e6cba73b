import { defineView, page } from '../view.ts'
import { moment } from '../wording.ts'

const STATES = { success: 'up', processing: 'degraded', rejected: 'down' } as const

/** Where what is sold is listed, as facilitators say with the settlements. */
export const listings = defineView('listings', 'Listings', async ({ sources }) => {
  const reports = await sources.listings()
  const { catalog } = sources.service.revision()
  const listed = new Set(reports.map(({ operation }) => operation))
  const sold = catalog.routes.filter(({ kind, operation }) => kind === 'paid' && !operation.planned)
  return page('Listings', {
    rows: reports.map(({ facilitator, operation, status, reason, at }) => ({
      facilitator,
      operation,
      words: status === 'success' ? 'listed' : status,
      state: STATES[status],
      reason: reason ?? '',
      at: moment(at),
    })),
    unlisted:
      reports.length === 0
        ? []
        : [...new Set(sold.map(({ operation }) => operation.id))].filter((id) => !listed.has(id)),
    baseUrl: sources.baseUrl,
  })
})
