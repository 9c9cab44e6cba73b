import { addDays, weekdayOf, type Day } from './day.ts'
import type { Holiday } from './holiday.ts'
import { weekendOf } from './weekend.ts'

/** What decides whether people work on a day. */
interface WorkRules {
  readonly country: string
  readonly holidaysOn: (day: Day) => readonly Holiday[]
  readonly isDecreedWorkday: (day: Day) => boolean
}

export function isWeekend(calendar: WorkRules, day: Day): boolean {
  return weekendOf(calendar.country).includes(weekdayOf(day))
}

export function isDayOff(calendar: WorkRules, day: Day): boolean {
  return calendar.holidaysOn(day).some((holiday) => holiday.day_off)
}

export function isWorkday(calendar: WorkRules, day: Day): boolean {
  return calendar.isDecreedWorkday(day) || (!isWeekend(calendar, day) && !isDayOff(calendar, day))
}

export function nextWorkday(calendar: WorkRules, from: Day, step: 1 | -1): Day {
  let day = addDays(from, step)
  while (!isWorkday(calendar, day)) day = addDays(day, step)
  return day
}

/** The `count`-th day of work after `from`, or before it with a step of -1; `from` itself is not counted. */
export function addWorkdays(calendar: WorkRules, from: Day, count: number, step: 1 | -1 = 1): Day {
  let day = from
  for (let left = count; left > 0; left--) day = nextWorkday(calendar, day, step)
  return day
}
