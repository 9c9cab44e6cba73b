const DAY_MS = 86_400_000

/** A calendar date without a zone, `YYYY-MM-DD`: such strings compare in time order. */
export type Day = string

export const WEEKDAYS = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const
export type Weekday = (typeof WEEKDAYS)[number]

export function addDays(day: Day, count: number): Day {
  return new Date(Date.parse(`${day}T00:00:00Z`) + count * DAY_MS).toISOString().slice(0, 10)
}

/** `count` days in a row, the first being `first`. */
export function daysFrom(first: Day, count: number): Day[] {
  return Array.from({ length: count }, (_, index) => addDays(first, index))
}

export function weekdayOf(day: Day): Weekday {
  const sundayFirst = new Date(`${day}T00:00:00Z`).getUTCDay()
  return WEEKDAYS[(sundayFirst + 6) % 7] ?? 'monday'
}

export function yearOf(day: Day): number {
  return Number(day.slice(0, 4))
}

/**
 * The date that a calendar on the wall of `zone` (IANA name) shows at `instant`.
 *
 * @example
 * dayIn('Asia/Tokyo', new Date('2026-12-31T16:00:00Z')) // '2027-01-01'
 */
export function dayIn(zone: string, instant: Date): Day {
  const parts = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    calendar: 'gregory',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  }).formatToParts(instant)
  const part = (type: 'year' | 'month' | 'day') => parts.find((each) => each.type === type)?.value ?? ''
  return `${part('year')}-${part('month')}-${part('day')}`
}
