import { InvalidParameter, type JsonObject } from 'ratecard/handler'
import type { HandlerWithPreview } from '../catalog.ts'
import { planDelivery, type OrderBy, type Plan } from './delivery-orderby/plan.ts'
import { deliveryRules } from './delivery-orderby/table.ts'
import { openCalendar, workdayWarnings, type Calendar } from './workday/calendar.ts'
import { addDays, dayIn, daysBetween, daysFrom, type Day } from './workday/day.ts'
import { HOLIDAYS } from './workday/source.ts'

const SAMPLED = [
  'arrive_by',
  'country',
  'service',
  'estimate',
  'safe_order_by',
  'latest_order_by',
  'feasible',
]
const LONGEST_AHEAD = 366
/** No carrier publishes such dates for every country and service. */
const RULE_OF_THUMB = {
  code: 'not_from_a_carrier',
  message:
    'Transit times are one rule of thumb for every country; only weekends and holidays are those of the country. Ask the carrier for its last day to order.',
}

/** The last days to order so that something arrives in time, by rules of thumb and the calendar of the country. */
export const deliveryOrderby: HandlerWithPreview<'util/delivery-orderby'> = {
  run: async ({ arrive_by: arriveBy, country, service }, { now }) => {
    const calendar = await openCalendar(country === 'UK' ? 'GB' : country)
    if (calendar === undefined) throw new InvalidParameter('country', `country '${country}' is not supported`)
    const today = dayIn(calendar.timezone, now())
    if (arriveBy < today) throw new InvalidParameter('arrive_by', 'arrive_by must not be in the past')
    if (arriveBy > addDays(today, LONGEST_AHEAD)) {
      throw new InvalidParameter('arrive_by', `arrive_by must be at most ${LONGEST_AHEAD} days ahead`)
    }
    const plan = planDelivery(calendar, service, arriveBy)
    if (plan === undefined) throw new InvalidParameter('service', `service '${service}' is not supported`)
    const feasible = feasibilityOf(plan, now())
    const { transit, unit, buffer } = plan.service
    return {
      source: [{ name: 'Delivery rules', version: deliveryRules().version }, HOLIDAYS],
      warnings: [
        RULE_OF_THUMB,
        ...workdayWarnings(
          calendar,
          daysFrom(plan.safe.date, daysBetween(plan.safe.date, arriveBy) + 1),
          today,
        ),
      ],
      body: {
        arrive_by: arriveBy,
        country: calendar.country,
        timezone: calendar.timezone,
        service,
        estimate: true,
        deliver_on: plan.deliverOn,
        safe_order_by: shown(plan.safe),
        latest_order_by: shown(plan.latest),
        transit_business_days: unit === 'business' ? transit : null,
        transit_calendar_days: unit === 'calendar' ? transit : null,
        buffer_days: buffer,
        peak_season: plan.peak,
        days_left: daysBetween(today, plan.safe.date),
        feasible,
        skipped_days: plan.skipped,
        alternatives: feasible === 'yes' ? [] : fasterThan(plan, calendar, arriveBy, now()),
        rules_version: deliveryRules().version,
      },
    }
  },
  preview: (body) => Object.fromEntries(Object.entries(body).filter(([name]) => SAMPLED.includes(name))),
}

function shown({ date, cutoff_local: cutoff, at }: OrderBy): JsonObject {
  return { date, cutoff_local: cutoff, at: at.toISOString() }
}

function feasibilityOf({ safe, latest }: Plan, now: Date): 'yes' | 'at_risk' | 'no' {
  if (now <= safe.at) return 'yes'
  return now <= latest.at ? 'at_risk' : 'no'
}

/** The services that may still make it, the nearest to what was asked for first. */
function fasterThan({ service }: Plan, calendar: Calendar, arriveBy: Day, now: Date): JsonObject[] {
  return service.faster.flatMap((name) => {
    const plan = planDelivery(calendar, name, arriveBy)
    if (plan === undefined) return []
    const feasible = feasibilityOf(plan, now)
    if (feasible === 'no') return []
    return [{ service: name, feasible, deliver_on: plan.deliverOn, latest_order_by: shown(plan.latest) }]
  })
}
