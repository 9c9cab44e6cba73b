import { InvalidParameter, type JsonObject, type Warning } from 'ratecard/handler'
import type { HandlerWithPreview } from '../catalog.ts'
import { planDelivery } from './delivery-orderby/plan.ts'
import { keptDays, type KeptDay } from './occasion/kept.ts'
import { anniversariesOf, materialOf, parsePersonal, type Anniversary } from './occasion/personal.ts'
import { knownYears } from './occasion/yearly-rule.ts'
import { occasions } from './occasion/table.ts'
import { missingHolidays, openCalendar, type Calendar } from './workday/calendar.ts'
import { addDays, dayIn, daysBetween, weekdayOf, yearOf, type Day } from './workday/day.ts'
import { HOLIDAYS } from './workday/source.ts'

const SHOWN_IN_SAMPLE = 3

type Entry = JsonObject & { readonly date: Day; readonly name: string; readonly is_public_holiday: boolean }

/** Upcoming holidays, observances, commercial and personal days, with a day to order by. */
export const occasion: HandlerWithPreview<'util/occasion'> = {
  run: async ({ country, from_date: fromDate, days, personal }, { now }) => {
    const own = parsePersonal(personal)
    const calendar = await openCalendar(country === 'UK' ? 'GB' : country)
    if (calendar === undefined) throw new InvalidParameter('country', `country '${country}' is not supported`)
    const first = fromDate === '' ? dayIn(calendar.timezone, now()) : fromDate
    const last = addDays(first, days - 1)
    const entries: Entry[] = [
      ...keptDays(calendar, first, last).map((kept) => entryOf(calendar, first, kept)),
      ...own
        .flatMap((day) => anniversariesOf(day, first, last))
        .map((anniversary) => personalEntry(calendar, first, anniversary)),
    ].sort(byDate)
    return {
      source: [HOLIDAYS, { name: 'Occasions', version: occasions().version }],
      warnings: [...missingHolidays(calendar, [first, last]), ...unknownDates(calendar, first, last)],
      body: {
        country: calendar.country,
        from_date: first,
        days,
        to_date: last,
        count: entries.length,
        occasions: entries,
      },
    }
  },
  preview: (body) => {
    const { occasions: all } = body
    return { ...body, occasions: Array.isArray(all) ? all.slice(0, SHOWN_IN_SAMPLE) : [] }
  },
}

function entryOf(calendar: Calendar, first: Day, { date, occasion: ours, holiday }: KeptDay): Entry {
  const isPublic = holiday?.type === 'public'
  return {
    date,
    weekday: weekdayOf(date),
    name: ours?.name ?? holiday?.name ?? '',
    local_name: holiday?.local_name ?? null,
    type: isPublic ? 'public' : (ours?.type ?? 'observance'),
    days_until: daysBetween(first, date),
    is_public_holiday: isPublic,
    date_is_approximate: ours?.approximate ?? false,
    begins_at_sunset_on: ours?.eve === true ? addDays(date, -1) : null,
    gift_relevant: ours?.gift !== undefined,
    suggested_order_by: ours?.gift === undefined ? null : orderBy(calendar, ours.gift, date, first),
    years: null,
    note: holiday?.note ?? null,
  }
}

function personalEntry(calendar: Calendar, first: Day, anniversary: Anniversary): Entry {
  const { name, date, years, note } = anniversary
  const material = materialOf(anniversary)
  return {
    date,
    weekday: weekdayOf(date),
    name,
    local_name: null,
    type: 'personal',
    days_until: daysBetween(first, date),
    is_public_holiday: false,
    date_is_approximate: false,
    begins_at_sunset_on: null,
    gift_relevant: true,
    suggested_order_by: orderBy(calendar, 'parcel_domestic', date, first),
    years: years ?? null,
    note: [material && `${material} anniversary`, note].filter(Boolean).join('; ') || null,
  }
}

/** Null when the safe day is over: then util/delivery-orderby knows what is still possible. */
function orderBy(calendar: Calendar, service: string, date: Day, first: Day): Day | null {
  const safe = planDelivery(calendar, service, date)?.safe.date
  return safe !== undefined && safe >= first ? safe : null
}

function byDate(one: Entry, other: Entry): number {
  return (
    one.date.localeCompare(other.date) ||
    Number(other.is_public_holiday) - Number(one.is_public_holiday) ||
    one.name.localeCompare(other.name)
  )
}

/** Days that are known by a list of dates are missing where the list ends. */
function unknownDates(calendar: Calendar, first: Day, last: Day): Warning[] {
  return occasions().list.flatMap(({ name, in: datingIn }) => {
    const known = knownYears(datingIn(calendar.country).rule)
    if (known === undefined || (known.first <= yearOf(first) && yearOf(last) <= known.last)) return []
    const message = `${name} is known from ${known.first} to ${known.last} only`
    return [{ code: 'occasions_incomplete', message }]
  })
}
