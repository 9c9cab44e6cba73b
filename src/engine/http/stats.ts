import { countKinds, listedRoutes } from '../documents/listing.ts'
import type { JsonObject } from '../json.ts'
import type { Days } from '../tally/daybook.ts'
import { dayFigures, funnelOf, totalOfAll } from './figures.ts'
import type { Revision } from './revision.ts'

/** The live `/stats.json`: totals of the service. What it earned is for its operator: `ratecard payments`. */
export function stats({ catalog, facts }: Revision, days: Days, now: number): JsonObject {
  const { service, revision } = catalog
  const figures = days.map(dayFigures)
  const sum = (count: (day: (typeof figures)[number]) => number): number =>
    figures.reduce((total, day) => total + count(day), 0)
  return {
    service: service.name,
    version: service.version,
    revision,
    sandbox: facts.sandbox,
    checked_at: new Date(now).toISOString(),
    routes: countKinds(listedRoutes(catalog)),
    since: figures[0]?.date ?? null,
    answers: { paid: sum((day) => day.paid_answers), free: sum((day) => day.free_answers) },
    funnel: { ...funnelOf(totalOfAll(days)) },
    days: figures.map((day) => ({ ...day })),
  }
}
