import { openTable } from '../../../data/table.ts'
import { yearOf, type Day } from './day.ts'
import type { Holiday } from './holiday.ts'

interface Decree {
  readonly country: string
  readonly year: number
  readonly published_at: string
  readonly source: string
  readonly off: readonly {
    readonly from: Day
    readonly to: Day
    readonly name: string
    readonly local_name: string
  }[]
  /** Days of work whatever the week says, separated by spaces. */
  readonly worked: string
}

interface Table {
  readonly version: string
  /** Countries, separated by spaces. */
  readonly decreed_yearly: string
  readonly decrees: readonly Decree[]
}

const TEXT = { type: 'string' } as const
const DATE = { type: 'string', pattern: '^20[0-9]{2}-[0-9]{2}-[0-9]{2}$' } as const

export const decrees = openTable<Table, Table>(
  'holiday-decrees.yaml',
  {
    type: 'object',
    required: ['version', 'decreed_yearly', 'decrees'],
    additionalProperties: false,
    properties: {
      version: DATE,
      decreed_yearly: { type: 'string', pattern: '^[A-Z]{2}( [A-Z]{2})*$' },
      decrees: {
        type: 'array',
        items: {
          type: 'object',
          required: ['country', 'year', 'published_at', 'source', 'off', 'worked'],
          additionalProperties: false,
          properties: {
            country: { type: 'string', pattern: '^[A-Z]{2}$' },
            year: { type: 'integer', minimum: 2000, maximum: 2100 },
            published_at: DATE,
            source: TEXT,
            off: {
              type: 'array',
              items: {
                type: 'object',
                required: ['from', 'to', 'name', 'local_name'],
                additionalProperties: false,
                properties: { from: DATE, to: DATE, name: TEXT, local_name: TEXT },
              },
            },
            worked: {
              type: 'string',
              pattern: '^20[0-9]{2}-[0-9]{2}-[0-9]{2}( 20[0-9]{2}-[0-9]{2}-[0-9]{2})*$',
            },
          },
        },
      },
    },
  },
  (table) => table,
)

/** Whether people work on this day by decree, whatever the week says. */
export function isDecreedWorkday(country: string, day: Day): boolean {
  return decreesOf(country, yearOf(day)).some(({ worked }) => worked.split(' ').includes(day))
}

/** The holidays of a day with what was decreed for it: a day off by decree has its name first, and once. */
export function withDecree(country: string, day: Day, holidays: readonly Holiday[]): readonly Holiday[] {
  if (isDecreedWorkday(country, day)) return holidays.map((holiday) => ({ ...holiday, day_off: false }))
  if (holidays.some(({ day_off }) => day_off)) return holidays
  const decreed = decreesOf(country, yearOf(day)).flatMap(({ off, source }) =>
    off
      .filter(({ from, to }) => from <= day && day <= to)
      .map(({ name, local_name }) => ({
        name,
        local_name,
        type: 'public' as const,
        substitute: false,
        half_day: false,
        day_off: true,
        note: source,
      })),
  )
  return [...decreed, ...holidays]
}

/** What is not known of a year for want of a decree. */
export function decreeGap(country: string, year: number): string | undefined {
  const { decreed_yearly: yearly } = decrees()
  if (!yearly.split(' ').includes(country) || decreesOf(country, year).length > 0) return undefined
  return `Days off and days of work moved to weekends are decreed every year; ${year} is not known here`
}

function decreesOf(country: string, year: number): readonly Decree[] {
  return decrees().decrees.filter((decree) => decree.country === country && decree.year === year)
}
