export interface ReleaseDate {
  readonly comingSoon: boolean
  /** `YYYY-MM-DD`; null when the store names no day. */
  readonly date: string | null
  readonly year: number | null
  /** In the store's words. */
  readonly text: string
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/**
 * Reads the store's English wording of a release date, which names a day, a month, a quarter, a year, or none.
 *
 * @example
 * readReleaseDate('21 Aug, 2012', false) // { comingSoon: false, date: '2012-08-21', year: 2012, text: '21 Aug, 2012' }
 */
export function readReleaseDate(text: string, comingSoon: boolean): ReleaseDate {
  const year = /\b(19[7-9]\d|20\d\d)\b/.exec(text)?.[1]
  const month = MONTHS.indexOf((/[a-z]{3}/i.exec(text)?.[0] ?? '').toLowerCase()) + 1
  const day = /\b(\d{1,2})\b/.exec(text)?.[1]
  const date = year && month && day ? `${year}-${two(month)}-${two(Number(day))}` : null
  return {
    comingSoon,
    date: date !== null && isDay(date) ? date : null,
    year: year === undefined ? null : Number(year),
    text,
  }
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

function isDay(date: string): boolean {
  const time = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date)
}
