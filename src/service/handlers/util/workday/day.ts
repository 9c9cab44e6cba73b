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

/** How many days `last` comes after `first`; negative when it comes before. */
export function daysBetween(first: Day, last: Day): number {
  return Math.round((Date.parse(`${last}T00:00:00Z`) - Date.parse(`${first}T00:00:00Z`)) / DAY_MS)
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

/**
 * The instant at which the clocks of `zone` (IANA name) show `time` (HH:MM) on `day`.
 *
 * @example
 * instantAt('America/New_York', '2026-12-15', '16:00') // 2026-12-15T21:00:00Z
 */
export function instantAt(zone: string, day: Day, time: string): Date {
  const wanted = Date.parse(`${day}T${time}:00Z`)
  // The offset is asked for at the instant it gives: the first guess may be on the other side of a change of clocks.
  const guess = wanted - offsetAt(zone, wanted)
  return new Date(wanted - offsetAt(zone, guess))
}

/** How far the clocks of `zone` are ahead of UTC at an instant, in milliseconds. */
function offsetAt(zone: string, instant: number): number {
  const parts = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(new Date(instant))
  const part = (type: Intl.DateTimeFormatPartTypes) =>
    Number(parts.find((each) => each.type === type)?.value ?? 0)
  const shown = Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
    part('second'),
  )
  return shown - Math.floor(instant / 1000) * 1000
}
