import { InvalidParameter, type Json, type Warning } from 'ratecard/handler'
import type { HandlerWithPreview } from '../catalog.ts'
import {
  differingRegions,
  openCalendar,
  regionsOf,
  workdayWarnings,
  type Calendar,
} from './workday/calendar.ts'
import { addDays, daysBetween, dayIn, daysFrom, weekdayOf, type Day } from './workday/day.ts'
import type { Holiday } from './workday/holiday.ts'
import { HOLIDAYS } from './workday/source.ts'
import { weekendOf } from './workday/weekend.ts'
import { addWorkdays, isDayOff, isWeekend, isWorkday, nextWorkday } from './workday/working-day.ts'

const SAMPLED = [
  'country',
  'country_name',
  'timezone',
  'verified',
  'date',
  'is_workday',
  'reason',
  'next_workday',
  'next_holidays',
]

/** Is it a day of work in a country, which is the next, and what lies between: whole-country holidays, offline. */
export const workday: HandlerWithPreview<'util/workday'> = {
  run: async ({ country: said, region, date, days }, { now }) => {
    const country = said === 'UK' ? 'GB' : said
    const calendar = await openCalendar(country, region)
    if (calendar === undefined) throw await unknownPlace(country, region)
    const first = date === '' ? dayIn(calendar.timezone, now()) : date
    const range = daysFrom(first, days)
    const added = addWorkdays(calendar, first, days)
    const last = range.at(-1) ?? first
    const covered = daysFrom(first, daysBetween(first, added > last ? added : last) + 1)
    const warnings = [
      ...workdayWarnings(calendar, covered, dayIn(calendar.timezone, now())),
      ...(region === '' ? await regionWarnings(calendar, covered) : []),
    ]
    return {
      source: [HOLIDAYS],
      warnings,
      body: {
        country: calendar.country,
        country_name: calendar.name,
        timezone: calendar.timezone,
        scope: calendar.scope,
        verified: warnings.length === 0,
        date: first,
        days,
        weekend: weekendOf(calendar.country),
        ...factsOf(calendar, first),
        reason: reasonOf(calendar, first),
        holiday: calendar.holidaysOn(first)[0] ?? null,
        next_workday: nextWorkday(calendar, first, 1),
        previous_workday: nextWorkday(calendar, first, -1),
        add_workdays: { days, result: added },
        workdays_in_range: range.filter((day) => isWorkday(calendar, day)).length,
        calendar: range.map((day) => ({
          date: day,
          weekday: weekdayOf(day),
          ...factsOf(calendar, day),
          holiday: calendar.holidaysOn(day)[0]?.name ?? null,
        })),
        holidays_in_range: range.flatMap((day) => calendar.holidaysOn(day).map(datedOn(day))),
        next_holidays: nextHolidays(calendar, first, 3),
      },
    }
  },
  preview: (body) => Object.fromEntries(Object.entries(body).filter(([name]) => SAMPLED.includes(name))),
}

async function unknownPlace(country: string, region: string): Promise<InvalidParameter> {
  if (region === '' || (await openCalendar(country)) === undefined)
    return new InvalidParameter('country', `country '${country}' is not supported`)
  const regions = Object.keys(await regionsOf(country))
  return new InvalidParameter('region', `region '${region}' is not known in ${country}`, { regions })
}

/** Whole-country answers are not those of every region. */
async function regionWarnings(calendar: Calendar, days: readonly Day[]): Promise<Warning[]> {
  const names = await differingRegions(calendar, days)
  if (names.length === 0) return []
  const message = `People work on other days in these regions, see the parameter region: ${names.join(', ')}`
  return [{ code: 'regions_differ', message, source: HOLIDAYS.name }]
}

function factsOf(calendar: Calendar, day: Day) {
  return {
    is_workday: isWorkday(calendar, day),
    is_weekend: isWeekend(calendar, day),
    is_bank_holiday: calendar.holidaysOn(day).some(({ type }) => type === 'bank'),
  }
}

/** A holiday that falls on a weekend is named as the holiday. */
function reasonOf(calendar: Calendar, day: Day): 'holiday' | 'weekend' | null {
  if (isDayOff(calendar, day)) return 'holiday'
  return isWeekend(calendar, day) && !calendar.isDecreedWorkday(day) ? 'weekend' : null
}

/** The next holidays on which work rests, weekends included; fewer when two years hold no more. */
function nextHolidays(calendar: Calendar, from: Day, count: number): Json[] {
  const found: Json[] = []
  // One day at a time: years that are not reached need not be computed.
  for (
    let day = addDays(from, 1), left = 731;
    left > 0 && found.length < count;
    day = addDays(day, 1), left--
  ) {
    const holiday = calendar.holidaysOn(day)[0]
    if (holiday?.day_off === true) found.push(datedOn(day)(holiday))
  }
  return found
}

function datedOn(day: Day) {
  return (holiday: Holiday) => ({ date: day, weekday: weekdayOf(day), ...holiday })
}
