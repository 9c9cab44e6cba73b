import { openTable } from '../../../data/open-table.ts'
import { yearOf, type Day } from './day.ts'
import type { Holiday } from './holiday.ts'

interface Correction {
  readonly country: string
  readonly source: string
  /** Whether the source decides the day; else the day follows the second table and stays unverified. */
  readonly checked: boolean
  /** Days off: the English name, and the local one where it is known. */
  readonly off: Readonly<Record<Day, readonly string[]>>
  /** Days of `off` that depend on the sighting of the moon. Lists of days are separated by spaces. */
  readonly moon?: string
  /** Days on which people work although it is a weekend or a holiday. */
  readonly worked?: string
  /** Days that the rules take for holidays and that are none. */
  readonly removed?: string
}

interface Table {
  readonly version: string
  readonly compared: { readonly first: number; readonly last: number; readonly countries: string }
  /** Whose official calendar, or law, was compared day by day. */
  readonly published: { readonly first: number; readonly last: number; readonly countries: string }
  /** From which year on the days off of a country are still to be decreed. */
  readonly redecided: Readonly<Record<string, number>>
  readonly corrections: readonly Correction[]
  readonly differences: readonly {
    readonly country: string
    readonly reason: string
    readonly days: string
  }[]
}

interface CorrectionTable {
  readonly version: string
  of(country: string): Corrections
}

/** Corrections of the library's rules for one country. */
interface Corrections {
  readonly off: ReadonlyMap<Day, Holiday>
  readonly worked: ReadonlySet<Day>
  readonly removed: ReadonlySet<Day>
  /** Why a day is not verified. */
  readonly doubts: ReadonlyMap<Day, string>
  /** From this year on days off are still to be decreed. */
  readonly redecided: number
  /** Years compared with a second table; undefined when none was. */
  readonly compared: Years | undefined
  /** Years compared with an official calendar; undefined when none was. */
  readonly published: Years | undefined
  /** Days that a source decides, whatever the tables say. */
  readonly decreed: ReadonlySet<Day>
}

interface Years {
  readonly first: number
  readonly last: number
}

const TEXT = { type: 'string' } as const
const DAY = '20[0-9]{2}-[0-9]{2}-[0-9]{2}'
const DAYS = { type: 'string', pattern: `^${DAY}( ${DAY})*$` } as const
const OPTIONAL_DAYS = { ...DAYS, nullable: true } as const
const COUNTRY = { type: 'string', pattern: '^[A-Z]{2}$' } as const
const YEAR = { type: 'integer', minimum: 2000, maximum: 2100 } as const

export const holidayCorrections = openTable<Table, CorrectionTable>(
  'holiday-corrections.yaml',
  {
    type: 'object',
    required: ['version', 'compared', 'published', 'redecided', 'corrections', 'differences'],
    additionalProperties: false,
    properties: {
      version: { type: 'string', pattern: `^${DAY}$` },
      compared: {
        type: 'object',
        required: ['first', 'last', 'countries'],
        additionalProperties: false,
        properties: { first: YEAR, last: YEAR, countries: TEXT },
      },
      published: {
        type: 'object',
        required: ['first', 'last', 'countries'],
        additionalProperties: false,
        properties: { first: YEAR, last: YEAR, countries: TEXT },
      },
      redecided: { type: 'object', required: [], additionalProperties: YEAR },
      corrections: {
        type: 'array',
        items: {
          type: 'object',
          required: ['country', 'source', 'checked', 'off'],
          additionalProperties: false,
          properties: {
            country: COUNTRY,
            source: TEXT,
            checked: { type: 'boolean' },
            off: {
              type: 'object',
              required: [],
              propertyNames: { pattern: `^${DAY}$` },
              additionalProperties: { type: 'array', items: TEXT, minItems: 1, maxItems: 2 },
            },
            moon: OPTIONAL_DAYS,
            worked: OPTIONAL_DAYS,
            removed: OPTIONAL_DAYS,
          },
        },
      },
      differences: {
        type: 'array',
        items: {
          type: 'object',
          required: ['country', 'reason', 'days'],
          additionalProperties: false,
          properties: { country: COUNTRY, reason: TEXT, days: DAYS },
        },
      },
    },
  },
  (table) => ({ version: table.version, of: (country) => read(table, country) }),
)

function read(
  { compared, published, redecided, corrections, differences }: Table,
  country: string,
): Corrections {
  const own = corrections.filter((each) => each.country === country)
  const doubts = new Map<Day, string>()
  for (const { checked, off, worked, removed, source } of own) {
    if (checked) continue
    for (const day of [...Object.keys(off), ...daysOf(worked), ...daysOf(removed)])
      doubts.set(day, `Two holiday tables differ, or the source does not decide the day (${source})`)
  }
  for (const { days, reason } of differences.filter((each) => each.country === country))
    for (const day of daysOf(days)) doubts.set(day, reason)
  return {
    off: new Map(own.flatMap(holidaysOf)),
    worked: new Set(own.flatMap(({ worked }) => daysOf(worked))),
    removed: new Set(own.flatMap(({ removed }) => daysOf(removed))),
    doubts,
    redecided: redecided[country] ?? Infinity,
    compared: compared.countries.split(' ').includes(country) ? compared : undefined,
    published: published.countries.split(' ').includes(country) ? published : undefined,
    decreed: new Set(
      own
        .filter(({ checked }) => checked)
        .flatMap(({ off, worked, removed }) => [...Object.keys(off), ...daysOf(worked), ...daysOf(removed)]),
    ),
  }
}

function holidaysOf({ off, moon, source }: Correction): [Day, Holiday][] {
  const moonDays = new Set(daysOf(moon))
  return Object.entries(off).map(([day, [name = '', localName = name]]) => [
    day,
    {
      name,
      local_name: localName,
      type: 'public',
      substitute: name.endsWith(' (observed)'),
      half_day: false,
      day_off: true,
      moon_dependent: moonDays.has(day),
      note: source,
    },
  ])
}

function daysOf(days: string | undefined): Day[] {
  return days === undefined ? [] : days.split(' ')
}

/** The holidays of a day as corrected: a corrected day off has one holiday, and a removed one none. */
export function correct({ off, worked, removed }: Corrections, day: Day, holidays: readonly Holiday[]) {
  const corrected = off.get(day)
  if (corrected !== undefined) return [corrected]
  if (removed.has(day)) return holidays.filter(({ day_off }) => !day_off)
  return worked.has(day) ? holidays.map((holiday) => ({ ...holiday, day_off: false })) : holidays
}

/**
 * Why it is not certain whether people work on a day; undefined when an official calendar or a decree says so. Two tables
 * that agree are no source: they may share an error.
 */
export function doubtOf(
  { doubts, redecided, compared, published, decreed }: Corrections,
  day: Day,
): string | undefined {
  if (compared === undefined) return 'The holidays of this country were not compared with a second table'
  const year = yearOf(day)
  if (year < compared.first || year > compared.last)
    return `Holidays were compared with a second table for ${compared.first} to ${compared.last} only`
  if (year >= redecided) return `The days off of ${year} are decreed every year and not all known here`
  const doubt = doubts.get(day)
  if (doubt !== undefined || decreed.has(day)) return doubt
  if (published !== undefined && year >= published.first && year <= published.last) return undefined
  return `No official calendar of ${year} was compared, only a second table, which agrees`
}
