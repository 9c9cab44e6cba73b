import { daysOfOccasion } from '../occasion/table.ts'
import type { Calendar } from '../workday/calendar.ts'
import { addDays, instantAt, weekdayOf, yearOf, type Day } from '../workday/day.ts'
import { addWorkdays, isDayOff, isWeekend, isWorkday } from '../workday/working-day.ts'
import { comesOnSaturday, deliveryRules, type Service } from './table.ts'

/** The last moment of a day on which an order still counts for that day. */
export interface OrderBy {
  readonly date: Day
  /** HH:MM on the clocks of the country. */
  readonly cutoff_local: string
  readonly at: Date
}

export interface Plan {
  /** The last day of delivery that is not after the day it must arrive by. */
  readonly deliverOn: Day
  /** Orders until then arrive even when everything takes its longest. */
  readonly safe: OrderBy
  /** Orders until then arrive if everything goes its fastest. */
  readonly latest: OrderBy
  readonly service: Service
  readonly peak: boolean
  /** Days between the safe order and the arrival on which nothing moves. */
  readonly skipped: readonly { readonly date: Day; readonly reason: string }[]
}

/** When to order; `undefined` for a service that the table does not have. Looks at no clock: the same any day. */
export function planDelivery(calendar: Calendar, name: string, arriveBy: Day): Plan | undefined {
  const { services, peaks } = deliveryRules()
  const service = services[name]
  if (service === undefined) return undefined
  const extra = peaks
    .filter(
      (peak) =>
        peak.services.includes(name) &&
        (peak.in?.split(' ').includes(calendar.country) ?? true) &&
        daysAround(arriveBy, peak.occasion, calendar.country).some(
          (day) => addDays(day, -peak.before) <= arriveBy && arriveBy <= addDays(day, peak.after),
        ),
    )
    .reduce((days, peak) => days + peak.extra_days, 0)
  let deliverOn = arriveBy
  while (!isDelivered(service, calendar, deliverOn)) deliverOn = addDays(deliverOn, -1)
  const orderBy = (transit: number): OrderBy => {
    const date =
      service.unit === 'calendar'
        ? addDays(deliverOn, -transit)
        : addWorkdays(calendar, deliverOn, transit, -1)
    return { date, cutoff_local: service.cutoff, at: instantAt(calendar.timezone, date, service.cutoff) }
  }
  const safe = orderBy(service.transit.max + service.buffer + extra)
  return {
    deliverOn,
    safe,
    latest: orderBy(service.transit.min),
    service,
    peak: extra > 0,
    skipped: service.unit === 'calendar' ? [] : skippedDays(calendar, safe.date, deliverOn, arriveBy),
  }
}

/** An occasion may be a neighbour in the next year or the last. */
function daysAround(day: Day, occasion: string, country: string): Day[] {
  const year = yearOf(day)
  return [year - 1, year, year + 1].flatMap((each) => [...daysOfOccasion(occasion, country, each)])
}

function isDelivered(service: Service, calendar: Calendar, day: Day): boolean {
  // Nobody carries a digital delivery; everything else rests on holidays.
  if (service.delivers === 'daily') return service.transit.max === 0 || !isDayOff(calendar, day)
  const sundays = service.sundays_on ?? []
  if (sundays.some((id) => daysOfOccasion(id, calendar.country, yearOf(day)).includes(day))) return true
  if (isDayOff(calendar, day)) return false
  if (!isWeekend(calendar, day)) return true
  return weekdayOf(day) === 'saturday' && comesOnSaturday(service, calendar.country)
}

function skippedDays(calendar: Calendar, from: Day, deliverOn: Day, to: Day): Plan['skipped'][number][] {
  const skipped = []
  for (let day = from; day <= to; day = addDays(day, 1)) {
    if (isWorkday(calendar, day) || day === deliverOn) continue
    const holiday = calendar.holidaysOn(day).find(({ day_off: off }) => off)
    skipped.push({ date: day, reason: holiday === undefined ? 'weekend' : `holiday: ${holiday.name}` })
  }
  return skipped
}
