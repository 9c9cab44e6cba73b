import { addDays, daysBetween, yearOf, type Day } from '../workday/day.ts'
import type { Calendar } from '../workday/calendar.ts'
import type { Holiday } from '../workday/holiday.ts'
import { daysBy, type Rule } from './yearly-rule.ts'
import { occasions, type Occasion } from './table.ts'

/** A day that a country keeps: out of the table, out of the holiday library, or the same day out of both. */
export interface KeptDay {
  readonly date: Day
  readonly occasion: Occasion | undefined
  readonly holiday: Holiday | undefined
}

/** The library's date of the same name may be far off ours, as Teachers' Day is; half a year away is another one. */
const NEAR = 183
/** How many days before the date of the table the library may have the same feast: reckoned, not announced. */
const MOST_EARLY = 3

/** The days that are kept between two days, both included. */
export function keptDays(calendar: Calendar, first: Day, last: Day): KeptDay[] {
  const listed = new Set(listedDays(calendar, addDays(first, -NEAR), addDays(last, NEAR)))
  const kept: KeptDay[] = []
  for (const occasion of occasions().list) {
    const { rule, ours } = occasion.in(calendar.country)
    for (const date of daysInYears(rule, yearOf(first) - 1, yearOf(last) + 1)) {
      const same = nearest([...listed], occasion, date)
      if (same !== undefined) listed.delete(same)
      const isSameFeast = (each: Listed): boolean => {
        const early = daysBetween(each.date, date)
        return isNamed(each, occasion) && early >= 0 && early <= MOST_EARLY
      }
      if (ours) for (const each of listed) if (isSameFeast(each)) listed.delete(each)
      const day = same === undefined || ours ? date : same.date
      // A holiday of several days may have begun before the day itself.
      const holiday =
        ours && same !== undefined && isSameFeast(same)
          ? same.holiday
          : calendar.feastsOn(day).find((each) => each === same?.holiday)
      kept.push({ date: day, occasion, holiday })
    }
  }
  const others = Array.from(listed, ({ date, holiday }) => ({ date, holiday, occasion: undefined }))
  return [...kept, ...others].filter(({ date }) => first <= date && date <= last)
}

interface Listed {
  readonly date: Day
  readonly holiday: Holiday
}

/** Under the first of its days each, unless it had begun before. */
function listedDays(calendar: Calendar, first: Day, last: Day): Listed[] {
  const found: Listed[] = []
  let before = calendar.feastsOn(addDays(first, -1))
  for (let day = first; day <= last; day = addDays(day, 1)) {
    const today = calendar.feastsOn(day)
    for (const holiday of today) if (!before.includes(holiday)) found.push({ date: day, holiday })
    before = today
  }
  return found
}

function daysInYears(rule: Rule, first: number, last: number): Day[] {
  const years = Array.from({ length: last - first + 1 }, (_, index) => first + index)
  return years.flatMap((year) => [...daysBy(rule, year)])
}

function isNamed({ holiday }: Listed, { names }: Occasion): boolean {
  return names.includes(holiday.name)
}

function nearest(listed: readonly Listed[], occasion: Occasion, date: Day): Listed | undefined {
  const distance = (each: Listed) => Math.abs(daysBetween(each.date, date))
  return listed
    .filter((each) => isNamed(each, occasion) && distance(each) <= NEAR)
    .sort((one, other) => distance(one) - distance(other))[0]
}
