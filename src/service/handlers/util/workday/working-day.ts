import type { Calendar } from './calendar.ts'
import { addDays, weekdayOf, type Day } from './day.ts'
import { weekendOf } from './weekend.ts'

export function isWeekend(calendar: Calendar, day: Day): boolean {
  return weekendOf(calendar.country).includes(weekdayOf(day))
}

export function isDayOff(calendar: Calendar, day: Day): boolean {
  return calendar.holidaysOn(day).some((holiday) => holiday.day_off)
}

export function isWorkday(calendar: Calendar, day: Day): boolean {
  return calendar.isDecreedWorkday(day) || (!isWeekend(calendar, day) && !isDayOff(calendar, day))
}

export function nextWorkday(calendar: Calendar, from: Day, step: 1 | -1): Day {
  let day = addDays(from, step)
  while (!isWorkday(calendar, day)) day = addDays(day, step)
  return day
}

/** The `count`-th day of work after `from`, or before it with a step of -1; `from` itself is not counted. */
export function addWorkdays(calendar: Calendar, from: Day, count: number, step: 1 | -1 = 1): Day {
  let day = from
  for (let left = count; left > 0; left--) day = nextWorkday(calendar, day, step)
  return day
}
