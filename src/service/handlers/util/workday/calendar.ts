import { setImmediate as breathe } from 'node:timers/promises'
import type Holidays from 'date-holidays'
import type { HolidaysTypes } from 'date-holidays'
import type { Warning } from 'ratecard/handler'
import { correct, doubtOf, holidayCorrections } from './corrections.ts'
import type { Holiday } from './holiday.ts'
import { remember } from './remember.ts'
import { addDays, yearOf, type Day } from './day.ts'
import { isWorkday } from './working-day.ts'

const HOUR_MS = 3_600_000
/** In days: one that begins in December may reach into January, as Incwala in Eswatini does. */
const LONGEST_FEAST = 10

export interface Calendar {
  readonly country: string
  readonly name: string
  /** Whose holidays these are: `national`, or the part of the country they hold for. */
  readonly scope: string
  /** IANA name: where a country has several, the one of its capital or largest city. */
  readonly timezone: string
  /** Days off first. */
  readonly holidaysOn: (day: Day) => readonly Holiday[]
  /**
   * What is celebrated by the rules of the country, including observances, regardless of decrees about work; days off
   * first.
   */
  readonly feastsOn: (day: Day) => readonly Holiday[]
  /** Whether people work on this day by decree, though it is a weekend. */
  readonly isDecreedWorkday: (day: Day) => boolean
  /** Why it is not certain whether people work on a day; undefined when it is. */
  readonly doubtOf: (day: Day) => string | undefined
  /** Says which holidays are missing in this year for want of data, if any are. */
  readonly gapIn: (year: number) => string | undefined
}

/** For countries with hardly any nationwide holiday: the part with most inhabitants. */
const PARTS: Readonly<Record<string, { readonly code: string; readonly scope: string }>> = {
  GB: { code: 'ENG', scope: 'England and Wales' },
}

/**
 * Holidays and observances of a whole country, or of one of the regions that `regionsOf` names, offline; `undefined` when
 * the country or the region is not known.
 */
export function openCalendar(country: string, region = ''): Promise<Calendar | undefined> {
  return openPlace(region === '' ? country : `${country}-${region}`)
}

const openPlace: (place: string) => Promise<Calendar | undefined> = remember(128, open)

/** The first-level subdivisions whose holidays are known: code and English name. */
export async function regionsOf(country: string): Promise<Readonly<Record<string, string>>> {
  const { default: Library } = await import('date-holidays')
  return new Library().getStates(country, 'en') ?? {}
}

/** Names of the regions in which people work on other days of these than in `calendar`, which has no region. */
export async function differingRegions(calendar: Calendar, days: readonly Day[]): Promise<string[]> {
  const differing = []
  for (const [region, name] of Object.entries(await regionsOf(calendar.country))) {
    // The rules of a country with fifty regions take a while at first: other requests go on in between.
    await breathe()
    const own = await openCalendar(calendar.country, region)
    if (own !== undefined && days.some((day) => isWorkday(own, day) !== isWorkday(calendar, day)))
      differing.push(name)
  }
  return differing
}

async function open(place: string): Promise<Calendar | undefined> {
  // 23 MB of rules: loaded by the first question, not at boot.
  const { default: Library } = await import('date-holidays')
  const [country = '', region = ''] = place.split('-')
  const name = new Library().getCountries('en')[country]
  if (name === undefined) return undefined
  const regions = region === '' ? {} : await regionsOf(country)
  if (region !== '' && !Object.hasOwn(regions, region)) return undefined
  const usual = Object.hasOwn(PARTS, country) ? PARTS[country] : undefined
  const part = region === '' ? usual : { code: region, scope: regions[region] ?? region }
  const holidays = part === undefined ? new Library(country) : new Library(country, part.code)
  const [language = 'en'] = holidays.getLanguages()
  const corrections = holidayCorrections().of(country)
  const yearly = remember(12, (year: number) => byDay(holidays, year, language))
  const feastsOn = (day: Day): Holiday[] =>
    [...new Set([yearOf(day), yearOf(addDays(day, -LONGEST_FEAST))])]
      .flatMap((year) => yearly(year).get(day) ?? [])
      .sort((one, other) => Number(other.day_off) - Number(one.day_off))
  return {
    country,
    name,
    scope: part?.scope ?? 'national',
    timezone: holidays.getTimezones()[0] ?? 'UTC',
    holidaysOn: (day) =>
      correct(
        corrections,
        day,
        feastsOn(day).filter(({ type }) => type !== 'observance'),
      ),
    feastsOn,
    isDecreedWorkday: (day) => corrections.worked.has(day),
    doubtOf: (day) => (region === '' ? doubtOf(corrections, day) : REGIONAL),
    gapIn: remember(12, (year) => BY_STATE[country] ?? gap(holidays, year)),
  }
}

const REGIONAL = 'The holidays of regions were not compared with an official calendar'

/** The holidays that begin in `year`, under each of their days. */
function byDay(holidays: Holidays, year: number, language: string): Map<Day, Holiday[]> {
  // A language stays set on the instance, so that both calls must name theirs.
  const localNames = new Map(
    holidays.getHolidays(year, language).map((entry) => [`${entry.date} ${entry.rule}`, entry.name]),
  )
  const found = new Map<Day, Holiday[]>()
  // The United States write Labor Day, and the library's plain English does not.
  const english = holidays.getLanguages().find((each) => each.startsWith('en')) ?? 'en'
  for (const entry of holidays.getHolidays(year, english)) {
    const type = TYPES[entry.type]
    if (type === undefined) continue
    const holiday = describe(entry, type, localNames.get(`${entry.date} ${entry.rule}`) ?? entry.name)
    for (const day of daysOf(entry)) {
      found.set(day, [...(found.get(day) ?? []), holiday])
    }
  }
  return found
}

/** School holidays are no days of the whole country. */
const TYPES: Readonly<Partial<Record<HolidaysTypes.HolidayType, Holiday['type']>>> = {
  public: 'public',
  bank: 'bank',
  optional: 'observance',
  observance: 'observance',
}

function describe(entry: HolidaysTypes.Holiday, type: Holiday['type'], localName: string): Holiday {
  const note = 'note' in entry && typeof entry.note === 'string' ? entry.note : null
  const half = hoursOf(entry) < 20
  return {
    name: entry.name,
    local_name: localName,
    type,
    substitute: entry.substitute === true,
    half_day: half,
    day_off: type === 'public' && !half && !(note !== null && FOR_SOME.test(note)),
    moon_dependent: ISLAMIC.months.test(entry.rule),
    note,
  }
}

/** Notes on public holidays that only part of the people keep, such as Children's Day in China. */
const FOR_SOME =
  /^(only for women|women|youth|children|military personnel|for muslim|for all persons belonging)\b/i

/** `date` is in local time; `start` and `end` are instants and belong to another day in UTC. */
function daysOf(entry: HolidaysTypes.Holiday): Day[] {
  const first = entry.date.slice(0, 10)
  const length = Math.max(1, Math.round(hoursOf(entry) / 24))
  return Array.from({ length }, (_, index) => addDays(first, index))
}

/** 23 or 25 on the days when clocks change. */
function hoursOf(entry: HolidaysTypes.Holiday): number {
  return (entry.end.getTime() - entry.start.getTime()) / HOUR_MS
}

/** The two calendars that the library holds as tables, with the years in which its tables are complete. */
const ISLAMIC = {
  name: 'Islamic',
  months: /Muharram|Safar|awwal|thani|Rajab|Shaban|Ramadan|Shawwal|Qidah|Hijjah/,
  first: 1970,
  last: 2076,
} as const
const TABLES = [
  ISLAMIC,
  {
    name: 'Hebrew',
    months: /Nisan|Iyyar|Sivan|Tamuz|\bAv\b|Elul|Tishrei|Cheshvan|Kislev|Tevet|Shvat|Adar/,
    first: 1970,
    last: 2099,
  },
] as const

/** Countries whose holidays are mostly not those of the whole country. */
const BY_STATE: Readonly<Record<string, string>> = {
  IN: 'Most holidays of India are set by its states, or year by year; only those of the whole country with a fixed rule are known',
}

function gap(holidays: Holidays, year: number): string | undefined {
  // Any year inside the tables shows which calendars the country uses.
  const rules = holidays.getHolidays(2026).filter(({ type }) => type === 'public' || type === 'bank')
  const missing = TABLES.find(
    ({ first, last, months }) => (year < first || year > last) && rules.some(({ rule }) => months.test(rule)),
  )
  return (
    missing &&
    `Holidays of the ${missing.name} calendar are known from ${missing.first} to ${missing.last} only`
  )
}

/** Says which holidays are missing on some of the days; at most one warning. */
export function missingHolidays(calendar: Calendar, days: readonly Day[]): Warning[] {
  const missing = [...new Set(days.map(yearOf))].map(calendar.gapIn).find((gap) => gap !== undefined)
  return missing === undefined ? [] : [warning('holidays_incomplete', missing)]
}

/** Says why it is not certain on which of the days people work; at most one warning of each kind. */
export function workdayWarnings(calendar: Calendar, days: readonly Day[], today: Day): Warning[] {
  const doubts = [...new Set(days.flatMap((day) => calendar.doubtOf(day) ?? []))].slice(0, 3)
  const sighted = days
    .filter((day) => day > today)
    .filter((day) => calendar.holidaysOn(day).some((each) => each.moon_dependent && each.day_off))
  return [
    ...missingHolidays(calendar, days),
    ...(doubts.length === 0 ? [] : [warning('holidays_unverified', doubts.join('. '))]),
    ...(sighted.length === 0
      ? []
      : [
          warning(
            'holidays_moon_dependent',
            `Set by the sighting of the moon, may move by a day until announced: ${sighted.join(', ')}`,
          ),
        ]),
  ]
}

function warning(code: string, message: string): Warning {
  return { code, message, source: 'date-holidays' }
}
