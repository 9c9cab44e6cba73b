import { openTable } from '../../../data/open-table.ts'

export interface Service {
  readonly transit: { readonly min: number; readonly max: number }
  /** Business days are the country's days of work. */
  readonly unit: 'business' | 'calendar'
  /** Local time after which an order counts for the next day. */
  readonly cutoff: string
  readonly delivers: 'workdays' | 'saturdays' | 'six_days' | 'daily'
  /** Occasions on which it is delivered even on a Sunday. */
  readonly sundays_on?: readonly string[] | null
  readonly buffer: number
  /** What to look at where it would come too late, the nearest first. */
  readonly faster: readonly string[]
  readonly recorded_at: string
}

export interface Peak {
  readonly occasion: string
  readonly before: number
  readonly after: number
  readonly in?: string | null
  readonly services: readonly string[]
  readonly extra_days: number
}

interface Table {
  readonly version: string
  readonly source: string
  readonly saturday_parcels: string
  readonly services: Readonly<Record<string, Service>>
  readonly peaks: readonly Peak[]
}

const DAYS = { type: 'integer', minimum: 0, maximum: 60 } as const
const DATE = { type: 'string', pattern: '^20[0-9]{2}-[0-9]{2}-[0-9]{2}$' } as const
const COUNTRIES = { type: 'string', pattern: '^[A-Z]{2}( [A-Z]{2})*$' } as const
const WORDS = { type: 'array', items: { type: 'string', pattern: '^[a-z_]+$' } } as const

export const deliveryRules = openTable(
  'delivery.yaml',
  {
    type: 'object',
    required: ['version', 'source', 'saturday_parcels', 'services', 'peaks'],
    additionalProperties: false,
    properties: {
      version: DATE,
      source: { type: 'string' },
      saturday_parcels: COUNTRIES,
      services: {
        type: 'object',
        required: [],
        additionalProperties: {
          type: 'object',
          required: ['transit', 'unit', 'cutoff', 'delivers', 'buffer', 'faster', 'recorded_at'],
          additionalProperties: false,
          properties: {
            transit: {
              type: 'object',
              required: ['min', 'max'],
              additionalProperties: false,
              properties: { min: DAYS, max: DAYS },
            },
            unit: { type: 'string', enum: ['business', 'calendar'] },
            cutoff: { type: 'string', pattern: '^[0-2][0-9]:[0-5][0-9]$' },
            delivers: { type: 'string', enum: ['workdays', 'saturdays', 'six_days', 'daily'] },
            sundays_on: { ...WORDS, nullable: true },
            buffer: DAYS,
            faster: WORDS,
            recorded_at: DATE,
          },
        },
      },
      peaks: {
        type: 'array',
        items: {
          type: 'object',
          required: ['occasion', 'before', 'after', 'services', 'extra_days'],
          additionalProperties: false,
          properties: {
            occasion: { type: 'string', pattern: '^[a-z_]+$' },
            before: DAYS,
            after: DAYS,
            in: { ...COUNTRIES, nullable: true },
            services: WORDS,
            extra_days: DAYS,
          },
        },
      },
    },
  },
  (table: Table) => table,
)

/** Whether a service comes on Saturdays in a country where Saturday is no day of work. */
export function comesOnSaturday(service: Service, country: string): boolean {
  return (
    service.delivers === 'six_days' ||
    (service.delivers === 'saturdays' && deliveryRules().saturday_parcels.split(' ').includes(country))
  )
}
