import { openTable } from '../../../data/open-table.ts'
import type { Day } from '../workday/day.ts'
import { daysBy, parseRule, type Rule } from './yearly-rule.ts'

type Type = 'observance' | 'religious' | 'commercial'

interface Line {
  /** Country codes; absent in the line for all others. */
  readonly in?: string | null
  readonly on: string
  readonly ours?: boolean | null
}
interface Table {
  readonly version: string
  readonly occasions: readonly Row[]
}
interface Row {
  readonly id: string
  readonly name: string
  readonly names: readonly string[]
  readonly type: Type
  /** The delivery service of a usual gift. */
  readonly gift?: string | null
  readonly approximate?: boolean | null
  readonly eve?: boolean | null
  readonly days: readonly Line[]
  readonly source_url: string
  readonly recorded_at: string
}

/** A day that people celebrate or give on, next to or instead of what the holiday library knows. */
export interface Occasion {
  readonly id: string
  readonly name: string
  /** What the holiday library calls it. */
  readonly names: readonly string[]
  readonly type: Type
  readonly gift: string | undefined
  /** Seen by the moon, or reckoned otherwise elsewhere: a day earlier or later is possible. */
  readonly approximate: boolean
  /** Begins at sunset of the day before. */
  readonly eve: boolean
  readonly in: (country: string) => Dating
}

export interface Dating {
  readonly rule: Rule
  /** Whether the date of this table takes precedence over the library's. */
  readonly ours: boolean
}

const NEVER: Dating = { rule: { kind: 'never' }, ours: false }

const DATE = { type: 'string', pattern: '^20[0-9]{2}-[0-9]{2}-[0-9]{2}$' } as const
const TEXT = { type: 'string', minLength: 1 } as const
const FLAG = { type: 'boolean', nullable: true } as const

export const occasions = openTable(
  'occasions.yaml',
  {
    type: 'object',
    required: ['version', 'occasions'],
    additionalProperties: false,
    properties: {
      version: DATE,
      occasions: {
        type: 'array',
        items: {
          type: 'object',
          required: ['id', 'name', 'names', 'type', 'days', 'source_url', 'recorded_at'],
          additionalProperties: false,
          properties: {
            id: { type: 'string', pattern: '^[a-z_]+$' },
            name: TEXT,
            names: { type: 'array', items: TEXT },
            type: { type: 'string', enum: ['observance', 'religious', 'commercial'] },
            gift: { ...TEXT, nullable: true },
            approximate: FLAG,
            eve: FLAG,
            days: {
              type: 'array',
              minItems: 1,
              items: {
                type: 'object',
                required: ['on'],
                additionalProperties: false,
                properties: {
                  in: { type: 'string', pattern: '^[A-Z]{2}( [A-Z]{2})*$', nullable: true },
                  on: TEXT,
                  ours: FLAG,
                },
              },
            },
            source_url: { type: 'string', pattern: '^https://' },
            recorded_at: DATE,
          },
        },
      },
    },
  },
  (table: Table) => ({ version: table.version, list: table.occasions.map(occasionOf) }),
)

function occasionOf(row: Row): Occasion {
  const lines = row.days.map((line) => ({
    countries: line.in?.split(' '),
    dating: { rule: parseRule(line.on), ours: line.ours === true },
  }))
  return {
    id: row.id,
    name: row.name,
    names: row.names,
    type: row.type,
    gift: row.gift ?? undefined,
    approximate: row.approximate === true,
    eve: row.eve === true,
    in: (country) => lines.find(({ countries }) => countries?.includes(country) ?? true)?.dating ?? NEVER,
  }
}

/** The days of an occasion of the table in a year and country; none where it is not kept. */
export function daysOfOccasion(id: string, country: string, year: number): readonly Day[] {
  const occasion = occasions().list.find((each) => each.id === id)
  return occasion === undefined ? [] : daysBy(occasion.in(country).rule, year)
}
