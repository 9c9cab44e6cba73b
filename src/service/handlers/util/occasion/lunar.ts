import { remember } from '../workday/remember.ts'
import { addDays, type Day } from '../workday/day.ts'

export const LUNAR = ['chinese', 'islamic', 'hebrew'] as const
export type Lunar = (typeof LUNAR)[number]

/** The Gregorian days of a year that a calendar of the moon calls `name`: two, now and then, in the Islamic one. */
export function daysCalled(calendar: Lunar, name: string, year: number): readonly Day[] {
  return namedDays(`${calendar} ${year}`).get(name) ?? []
}

const FORMATS = {
  chinese: numericIn('chinese'),
  islamic: numericIn('islamic-umalqura'),
  hebrew: new Intl.DateTimeFormat('en-u-ca-hebrew', { month: 'long', day: 'numeric', timeZone: 'UTC' }),
}

function numericIn(calendar: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat(`en-u-ca-${calendar}`, { month: 'numeric', day: 'numeric', timeZone: 'UTC' })
}

/** All days of one year by their names there; `chinese 2026` and so on. */
const namedDays = remember(24, (calendarAndYear: string): ReadonlyMap<string, readonly Day[]> => {
  const [calendar, year] = calendarAndYear.split(' ')
  const found = new Map<string, Day[]>()
  const lunar = LUNAR.find((each) => each === calendar) ?? 'chinese'
  for (let day = `${year}-01-01`; day.slice(0, 4) === year; day = addDays(day, 1)) {
    const name = nameIn(lunar, day)
    found.set(name, [...(found.get(name) ?? []), day])
  }
  return found
})

/** `8-15` (month and day), or `15 Nisan` where months go by their names. */
function nameIn(calendar: Lunar, day: Day): string {
  const parts = FORMATS[calendar].formatToParts(new Date(`${day}T00:00:00Z`))
  const part = (type: 'month' | 'day') => parts.find((each) => each.type === type)?.value ?? ''
  return calendar === 'hebrew' ? `${part('day')} ${part('month')}` : `${part('month')}-${part('day')}`
}
